//! Requests and tokens of a language model.

mod counts;
mod events;
mod scan;
mod tap;
mod tokens;

use alloc::{boxed::Box, sync::Arc};
use core::{fmt, time::Duration};

use async_trait::async_trait;
use http::Extensions;
use paceline::{
    Adaptive, Class, Idempotency, RetryStrategy,
    classify::{Classifier, HttpResponseParts, RefusalClassifier},
    law::{DeclaredSettings, Dimension, LimitName, PacedSettings, PacedSettingsError},
    set::{MOST_RATES, Weights},
    strategy::AttemptCharge,
};
use reqwest::{Request, Response};
use reqwest_middleware::{Middleware, Next};

pub use counts::ModelSnapshot;
pub use tokens::Tokens;

use crate::Pacing;
use counts::Counts;
use tap::{Account, tapped};
use tokens::UsualOutput;

const MINUTE: Duration = Duration::from_secs(60);
/// The bucket of tokens holds the tokens of this time, the longest allowed.
const AT_ONCE: Duration = Duration::from_secs(10);

type Estimate = dyn Fn(&Request) -> Option<Tokens> + Send + Sync;

/// What a send rate of a [`ModelPacing`] counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ModelLimit {
    /// Requests.
    Requests,
    /// The tokens of prompts and answers together.
    Tokens,
    /// The tokens of prompts.
    InputTokens,
    /// The tokens of answers.
    OutputTokens,
}

/// What each rate of the strategy counts, in order, and the most tokens that one request takes of
/// it.
#[derive(Clone, Copy, Debug)]
struct Counting {
    limits: [Option<ModelLimit>; MOST_RATES],
    most: [u32; MOST_RATES],
}

impl Counting {
    fn weights(&self, tokens: Tokens) -> Weights {
        let mut all = [0; MOST_RATES];
        for (weight, limit) in all.iter_mut().zip(self.limits.iter().flatten()) {
            *weight = match limit {
                ModelLimit::Requests => 1,
                ModelLimit::Tokens => tokens.total(),
                ModelLimit::InputTokens => tokens.input(),
                ModelLimit::OutputTokens => tokens.output(),
            };
        }
        let given = all.get(..self.limits.iter().flatten().count());
        Weights::of(given.unwrap_or(&all)).unwrap_or(Weights::from([1]))
    }

    /// Returns the weights of a request with this estimate.
    fn estimated(&self, tokens: Tokens) -> Weights {
        let mut weights = self.weights(tokens);
        let mut all = [0; MOST_RATES];
        let given = weights.as_slice();
        for ((weight, given), most) in all.iter_mut().zip(given).zip(self.most) {
            *weight = (*given).min(most);
        }
        // A request takes at least one token.
        if all == [0; MOST_RATES] {
            all[0] = 1;
        }
        if let Ok(capped) = Weights::of(all.get(..given.len()).unwrap_or(&all)) {
            weights = capped;
        }
        // An estimate may exceed a limit although the request fits.
        weights.up_to_capacity()
    }
}

/// The middleware for one language model. It obeys the limits of requests and of tokens, and
/// repeats failed requests as the makers' own SDKs do.
///
/// The tokens of a request are estimated from its JSON. The body of the response passes through
/// unchanged, piece by piece. Its usage replaces the estimate, whether the body is JSON or a stream
/// of server-sent events. So the next request waits for exactly the tokens that were used.
///
/// Clones share the limits. As with [`Pacing`], add it to a client last.
///
/// # Usage
///
/// The usage is read from the responses of `OpenAI` (chat completions, responses, embeddings),
/// Azure `OpenAI`, Anthropic, Gemini, Groq, Mistral, `OpenRouter` and Bedrock, and of services with
/// the same format. Tokens that Anthropic reads from its cache do not count, since its limits do
/// not count them. If a response has no usage, or is dropped before it, the estimate stays spent.
/// If more was streamed, the streamed amount counts. `OpenAI` streams a usage only if
/// `stream_options.include_usage` is set. [`snapshot`](Self::snapshot) returns the counts.
///
/// The body is scanned and not kept, so the memory is the same for any length.
///
/// # Examples
///
/// ```
/// use paceline_reqwest::ModelPacing;
/// use reqwest_middleware::ClientBuilder;
///
/// let pacing = ModelPacing::declared();
/// let client = ClientBuilder::new(reqwest::Client::new()).with(pacing).build();
/// ```
#[derive(Clone)]
pub struct ModelPacing {
    pacing: Pacing,
    shared: Arc<Shared>,
    counting: Counting,
    estimate: Option<Arc<Estimate>>,
    class: Option<Class>,
}

/// The state that clones share.
struct Shared {
    strategy: Arc<dyn RetryStrategy>,
    counts: Counts,
    usual: UsualOutput,
}

impl ModelPacing {
    /// Keeps to the limits of requests and of tokens that the service declares in its headers, as
    /// `OpenAI`, Azure `OpenAI`, Groq, Mistral and `OpenRouter` do.
    ///
    /// Until the first response one request is sent at a time, since no limit is known. If no limit
    /// is declared, the rate follows the throttles.
    #[must_use]
    pub fn declared() -> Self {
        use ModelLimit::{Requests, Tokens};
        let tokens = DeclaredSettings::new().dimension(Dimension::Tokens);
        let strategy = Adaptive::builder().declared(DeclaredSettings::new());
        let strategy = strategy.also(tokens).build();
        // The settings are in range.
        let strategy = strategy.unwrap_or_else(|_| Adaptive::declared());
        Self::new(strategy, [Requests, Tokens])
    }

    /// Does the same as [`declared`](Self::declared) for a service with separate limits of the
    /// tokens of prompts and of answers, such as Anthropic.
    #[must_use]
    pub fn declared_apart() -> Self {
        use ModelLimit::{InputTokens, OutputTokens, Requests};
        let [input, output] = APART.map(|name| DeclaredSettings::new().dimension(of(name)));
        let strategy = Adaptive::builder().declared(DeclaredSettings::new());
        let strategy = strategy.also(input).also(output).build();
        // The settings are in range.
        let strategy = strategy.unwrap_or_else(|_| Adaptive::declared());
        Self::new(strategy, [Requests, InputTokens, OutputTokens])
    }

    /// Keeps to limits of requests and tokens a minute that the service does not declare.
    ///
    /// Limits of tokens that the service declares after all are obeyed as well.
    ///
    /// # Errors
    ///
    /// If one of the limits is 0.
    ///
    /// # Examples
    ///
    /// ```
    /// use paceline_reqwest::ModelPacing;
    ///
    /// let pacing = ModelPacing::per_minute(500, 200_000)?;
    /// assert!(ModelPacing::per_minute(0, 200_000).is_err());
    /// # Ok::<(), paceline::law::PacedSettingsError>(())
    /// ```
    pub fn per_minute(requests: u32, tokens: u32) -> Result<Self, PacedSettingsError> {
        use ModelLimit::{Requests, Tokens};
        let mut this = Self::new(Adaptive::per_minute(requests, tokens)?, [Requests, Tokens]);
        this.counting.most[1] = tokens;
        Ok(this)
    }

    /// Does the same as [`per_minute`](Self::per_minute) for a service with separate limits of the
    /// tokens of prompts and of answers.
    ///
    /// # Errors
    ///
    /// If one of the limits is 0.
    pub fn per_minute_apart(
        requests: u32,
        input: u32,
        output: u32,
    ) -> Result<Self, PacedSettingsError> {
        use ModelLimit::{InputTokens, OutputTokens, Requests};
        let mut builder = Adaptive::builder().paced(PacedSettings::fixed(requests, MINUTE)?);
        for (name, tokens) in APART.into_iter().zip([input, output]) {
            let fixed = PacedSettings::fixed(tokens, MINUTE)?.to_builder();
            let settings = DeclaredSettings::new().dimension(of(name));
            builder = builder.also(settings.otherwise(fixed.burst(AT_ONCE).build()?));
        }
        // The settings are in range.
        let strategy = builder.build().unwrap_or_else(|_| Adaptive::paced());
        let mut this = Self::new(strategy, [Requests, InputTokens, OutputTokens]);
        (this.counting.most[1], this.counting.most[2]) = (input, output);
        Ok(this)
    }

    /// Uses `strategy`, whose send rates count `limits`, in order. One to eight limits compile. If
    /// the strategy has another number of rates, every request is refused.
    ///
    /// # Examples
    ///
    /// Requests a minute that are known, and limits of tokens that are declared, with five
    /// attempts:
    ///
    /// ```
    /// use std::time::Duration;
    /// use paceline::{Adaptive, law::{DeclaredSettings, Dimension, PacedSettings}};
    /// use paceline_reqwest::{ModelLimit, ModelPacing};
    ///
    /// let strategy = Adaptive::builder()
    ///     .max_attempts(5)
    ///     .paced(PacedSettings::fixed(500, Duration::from_secs(60))?)
    ///     .also(DeclaredSettings::new().dimension(Dimension::Tokens))
    ///     .build()?;
    /// let pacing = ModelPacing::new(strategy, [ModelLimit::Requests, ModelLimit::Tokens]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn new<const N: usize>(
        strategy: impl RetryStrategy + 'static,
        limits: [ModelLimit; N],
    ) -> Self {
        const {
            assert!(
                N >= 1 && N <= MOST_RATES,
                "a strategy has one to eight send rates"
            );
        };
        let strategy: Arc<dyn RetryStrategy> = Arc::new(strategy);
        let mut counting = Counting {
            limits: [None; MOST_RATES],
            most: [u32::MAX; MOST_RATES],
        };
        for (kept, limit) in counting.limits.iter_mut().zip(limits) {
            *kept = Some(limit);
        }
        let pacing = Pacing::shared(Arc::clone(&strategy));
        Self {
            pacing: pacing.classifier(RefusalClassifier::language_models()),
            shared: Arc::new(Shared {
                strategy,
                counts: Counts::default(),
                usual: UsualOutput::new(),
            }),
            counting,
            estimate: None,
            class: None,
        }
    }

    /// Lets `estimate` say what a request costs. With `None` the default counts.
    ///
    /// By default a request costs a token for every four bytes of its body, and 1,000 for each
    /// attached file or picture. Its bound of the answer (`max_tokens` and the like) is added.
    /// Without a bound, the answer is estimated from earlier answers. [`Tokens`] in a request's
    /// extensions replace the estimate.
    ///
    /// # Examples
    ///
    /// ```
    /// use paceline_reqwest::{ModelPacing, Tokens};
    ///
    /// let pacing = ModelPacing::declared().estimate_by(|request| {
    ///     let body = request.body()?.as_bytes()?;
    ///     let input = body.len() / 3; // a tokenizer would count
    ///     Some(Tokens::new(u32::try_from(input).ok()?, 800))
    /// });
    /// ```
    #[must_use]
    pub fn estimate_by(
        mut self,
        estimate: impl Fn(&Request) -> Option<Tokens> + Send + Sync + 'static,
    ) -> Self {
        self.estimate = Some(Arc::new(estimate));
        self
    }

    /// Sets the class of this clone's requests, unless their extensions have a class.
    ///
    /// # Examples
    ///
    /// A person beside a batch, under the same limits:
    ///
    /// ```
    /// use paceline::Class;
    /// use paceline_reqwest::ModelPacing;
    ///
    /// let chat = ModelPacing::declared();
    /// let batch = chat.clone().class(Class::Background);
    /// ```
    #[must_use]
    pub const fn class(mut self, class: Class) -> Self {
        self.class = Some(class);
        self
    }

    /// Gives each request `span`, with all its attempts and waits: [`Pacing::deadline`].
    #[must_use]
    pub fn deadline(mut self, span: Duration) -> Self {
        self.pacing = self.pacing.deadline(span);
        self
    }

    /// Accepts no longer wait than `span` from the service: [`Pacing::max_retry_after`].
    #[must_use]
    pub fn max_retry_after(mut self, span: Duration) -> Self {
        self.pacing = self.pacing.max_retry_after(span);
        self
    }

    /// Lets `classifier` say what responses mean: [`Pacing::classifier`]. By default
    /// [`RefusalClassifier::language_models`] does.
    #[must_use]
    pub fn classifier(
        mut self,
        classifier: impl for<'a> Classifier<HttpResponseParts<'a>> + Send + Sync + 'static,
    ) -> Self {
        self.pacing = self.pacing.classifier(classifier);
        self
    }

    /// Returns the counts so far.
    #[must_use]
    pub fn snapshot(&self) -> ModelSnapshot {
        let Shared {
            strategy, counts, ..
        } = &*self.shared;
        counts.snapshot(&strategy.snapshot())
    }

    fn estimate(&self, request: &Request) -> Tokens {
        let own = self.estimate.as_ref().and_then(|own| own(request));
        own.unwrap_or_else(|| tokens::estimate(request, &self.shared.usual))
    }
}

/// The names of the limits in Anthropic's headers.
const APART: [&str; 2] = ["input-tokens", "output-tokens"];

fn of(name: &str) -> Dimension {
    Dimension::Named(LimitName::new(name))
}

/// Inserts `value`, unless there is a value of its type. Returns `true` if it was inserted.
fn insert<T: Clone + Send + Sync + 'static>(extensions: &mut Extensions, value: T) -> bool {
    let is_new = extensions.get::<T>().is_none();
    if is_new {
        extensions.insert(value);
    }
    is_new
}

#[async_trait]
impl Middleware for ModelPacing {
    async fn handle(
        &self,
        request: Request,
        extensions: &mut Extensions,
        next: Next<'_>,
    ) -> reqwest_middleware::Result<Response> {
        let given = extensions.get::<Tokens>().copied();
        let estimate = given.unwrap_or_else(|| self.estimate(&request));
        let is_weighed = insert(extensions, self.counting.estimated(estimate));
        // A repeated request costs tokens, and does no harm.
        let is_said = insert(extensions, Idempotency::Idempotent);
        let is_classed = self.class.is_some_and(|class| insert(extensions, class));
        let response = self.pacing.handle(request, extensions, next).await;
        // The caller may use the extensions for its next request.
        if is_weighed {
            extensions.remove::<Weights>();
        }
        if is_said {
            extensions.remove::<Idempotency>();
        }
        if is_classed {
            extensions.remove::<Class>();
        }
        let mut response = response?;
        let Some(charge) = response.extensions_mut().remove::<AttemptCharge>() else {
            return Ok(response);
        };
        let account = Account {
            shared: Arc::clone(&self.shared),
            counting: self.counting,
            estimate,
            charge,
        };
        Ok(tapped(response, account))
    }
}

impl fmt::Debug for ModelPacing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ModelPacing")
            .field("limits", &self.counting.limits)
            .field("class", &self.class)
            .field("pacing", &self.pacing)
            .finish_non_exhaustive()
    }
}
