-- One step of one member of a scope of send tokens. Everything a scope has is in one hash: field
-- `s` is the scope, `m<id>` a member. Times are microseconds of the engine's clock; rates are
-- tokens per second.
--
-- Answers {tokens granted, share, rate, members, whether the member was not known, what it may send
-- alone, the lease that the load asks for, the allowance, how long it is not to ask, the time until
-- the turn of one that starts, the time until the next knock and one more or 0 if the service is
-- open, whether this member knocks}, the rates in thousandths. Rules are those of the core's
-- `crates/core/src/law/paced/mod.rs`, but for these: a scope is limited from the start, so that rule
-- 8 knows a rate and rule 10 does not end it; and rule 7 is left out, as what is told in a window was
-- granted before it.
--
-- Members of two versions of this script may share a scope. A later version appends fields to a
-- record; it reads a missing one as 0, and ignores those that it does not know. A version that older
-- ones must not write under has a higher `wire`: they refuse. Where a field means something else,
-- the key's version changes.
--
-- A third argument says that the engine is a file of the members' machine, which is never away.
local key, member, is_file = KEYS[1], 'm' .. ARGV[1], ARGV[3] == 'file'
local ARGS = {'seq', 'leave', 'want', 'held', 'back', 'demand', 'spent', 'throttled', 'age', 'trip', 'pause',
  'ceiling', 'initial', 'floor', 'burst', 'lease', 'absent', 'keep', 'weight', 'alone', 'done', 'known', 'shut', 'head'}
local SCOPE = {'last', 'tokens', 'ceiling', 'lowest', 'turn', 'level', 'members', 'peak', 'since', 'ramp', 'trip',
  'delivered', 'granted', 'window', 'count', 'before', 'pause', 'out', 'woke', 'weights', 'burst', 'longest',
  'crest', 'sent', 'thrown', 'drained', 'done', 'refused', 'lent', 'lost', 'lost_at', 'slot',
  'starts', 'wire', 'mode', 'calm', 'calms', 'opened', 'taken', 'weighs', 'light', 'heard', 'refusal', 'wait',
  'knocked', 'knock', 'asked', 'due', 'most', 'idle', 'rise', 'shut'}
local MEMBER = {'seen', 'seq', 'grant', 'demand', 'credit', 'out', 'weight', 'absent', 'sent', 'thrown', 'own', 'cut', 'alone', 'lease', 'burst', 'start', 'knock'}
local WIRE = 1
local SECOND = 1000000
-- A throttle so long ago says nothing of the limit any more.
local AGED = 30
-- Which clock the law goes by: that of seconds; windows, with the service open; or shut, under one of
-- the two before.
local SECONDS, OPEN, SHUT_SECONDS, SHUT = 0, 1, 2, 3
-- The longest wait between two knocks, unless the cycle is long.
local LONGEST = 100 * SECOND
-- No member means such an allowance: the limit is not known.
local UNKNOWN = 1e9
-- The longest time that a spent plan may stop a scope: a month.
local MONTH = 31 * 86400 * SECOND
-- What a scope may count of requests and throttles to tell a sick member by, and how fast it
-- forgets them, in seconds.
local FORGET = 2
-- In so many seconds what forgotten members may send alone halves. The members halve it in 300 s, by
-- straight lines between the halves, which are never above this.
local HALVES = 400
-- So many steps a second are asked of the engine, by members that have joined: each step books the
-- next free slot for the member's next one.
local STEPS = 5000

-- Reads numbers by their names, of which the first `least` have to be there; or nothing if it is
-- anything else.
local function numbers(text, names, least)
  local found, i = {}, 0
  for word in string.gmatch(text, '%S+') do
    local number = tonumber(word)
    i = i + 1
    if not number or number ~= number or number < 0 or number > 9007199254740992 then return nil end
    if names[i] then found[names[i]] = number end
  end
  if i < least then return nil end
  for j = i + 1, #names do found[names[j]] = 0 end
  return found
end
local function scope_of(text) return numbers(text, SCOPE, 25) end
local function member_of(text) return numbers(text, MEMBER, 12) end

-- What a turn looks at of another member: it looks at all of them.
local PART = '^(%S+) %S+ %S+ (%S+) %S+ (%S+) (%S+) (%S+) %S+ %S+ %S+ %S+ ?(%S*) ?(%S*) ?(%S*)'
local function part_of(text)
  local seen, demand, out, weight, absent, alone, lease, burst = string.match(text, PART)
  local function number(word)
    local number = word == '' and 0 or tonumber(word)
    return number and number >= 0 and number <= 9007199254740992 and number
  end
  local part = {seen = number(seen), demand = number(demand), out = number(out), weight = number(weight),
    absent = number(absent), alone = number(alone), lease = number(lease), burst = number(burst)}
  if seen and part.seen and part.demand and part.out and part.weight and part.absent and part.alone and part.lease and part.burst then
    return part
  end
end

local function text(record, names)
  local words = {}
  for i, name in ipairs(names) do words[i] = string.format('%.17g', math.min(record[name], 9007199254740992)) end
  return table.concat(words, ' ')
end

local function broken(field) return redis.error_reply('BROKEN the field ' .. field) end

local a = numbers(ARGV[2], ARGS, 19)
if not a then return redis.error_reply('BROKEN the ask') end
local time = redis.call('TIME')
local now = tonumber(time[1]) * SECOND + tonumber(time[2])
local stored = redis.call('HMGET', key, 's', member)
local s, m
if stored[1] then
  s = scope_of(stored[1])
  if not s then return broken('s') end
  -- No engine's clock is a day ahead of another's: nothing of this was written by a member.
  if s.last - now > 86400 * SECOND then s = nil end
end
local is_new = not s
if is_new then -- a scope that is not remembered starts empty
  s = {last = now, tokens = 0, ceiling = a.ceiling, lowest = a.ceiling, turn = 0, level = 0, members = 0, peak = 0,
    since = now, ramp = 0, trip = 0, delivered = 0, granted = 0, window = now, count = 0, before = 0, pause = 0, out = 0, woke = now,
    weights = 0, burst = a.burst, longest = a.lease, crest = 0, sent = 0, thrown = 0, drained = 0, done = 0, refused = 0,
    lent = 0, lost = 0, lost_at = now, slot = now, starts = 0, wire = WIRE, mode = SECONDS, calm = 1, calms = 0, opened = 0,
    taken = 0, weighs = 0, light = 0, heard = 0, refusal = 0, wait = 0, knocked = 0, knock = 0, asked = 0, due = 0, most = 0,
    idle = 0, rise = 0, shut = 0}
end
if s.wire > WIRE then return redis.error_reply('VERSION the scope is of a later one') end
s.wire = WIRE
local joins = not stored[2]
if joins then
  m = {seen = now, seq = 0, grant = 0, demand = 0, credit = 0, out = 0, weight = a.weight, absent = a.absent, sent = 0,
    thrown = 0, own = 1, cut = 0, alone = 0, lease = 0, burst = 0, start = 0, knock = 0}
else
  m = member_of(stored[2])
  if not m then return broken(member) end
end

-- Nothing was sent before the engine's clock began.
a.age, a.done = math.min(a.age, now), math.min(a.done, now)
-- The engine's clock may be set back, and another engine's may be behind: what it has not lived
-- through mints nothing.
if now < s.last and s.last - now < SECOND then now = s.last end
for _, name in ipairs({'last', 'window', 'woke', 'drained', 'lost_at', 'opened', 'knock'}) do s[name] = math.min(s[name], now) end
s.pause, s.shut = math.min(s.pause, now + 60 * SECOND), math.min(s.shut, now + MONTH)
-- A cut that came with a pause is made when the pause ends.
s.since = math.min(s.since, math.max(now, s.pause))
-- No value is believed beyond what a member could have written; what is wrong within that ages out.
s.turn = math.min(s.turn, now + 2 * SECOND)
-- A member that sends nothing has no say in the allowance.
if a.demand == 0 then a.ceiling = math.max(a.ceiling, math.min(s.ceiling, 1e9)) end
s.ceiling = math.min(s.ceiling, a.ceiling)
s.lowest = math.min(s.lowest, a.ceiling)
-- The longest lease of a member, and the most that one wants kept: what all hold, and how late they
-- tell of it, goes by these.
s.longest = math.max(math.min(s.longest, 30 * SECOND), a.lease)
s.burst = math.max(math.min(s.burst, 30 * SECOND), a.burst)
s.ramp, s.trip = math.min(s.ramp, 8), math.min(s.trip, 60 * SECOND)
s.crest = math.min(s.crest, s.ceiling)
if s.peak > 0 then s.peak = math.max(math.min(s.peak, s.ceiling), math.min(a.floor, s.ceiling)) end
-- What is of windows has a rate.
if s.peak == 0 or s.mode > SHUT then s.mode = SECONDS end
s.calm, s.calms, s.rise = math.max(1, math.min(s.calm, 1e9)), math.min(s.calms, 64), math.min(s.rise, s.ceiling)
s.heard = math.min(s.heard, now + 60 * SECOND)
s.refusal = math.min(s.refusal, s.heard)
s.wait = math.min(s.wait, math.max(LONGEST, (now - s.opened) / 32), SECOND / math.max(a.floor, 1e-6))
s.due = math.min(s.due, math.max(now, s.heard) + s.wait)
m.seen, m.cut = math.min(m.seen, now), math.min(m.cut, now)
s.starts, m.start = math.min(s.starts, now + 60 * SECOND), math.min(m.start, now + 60 * SECOND)
m.weight, m.absent = a.weight, a.absent
s.members, s.weights = math.min(s.members, 1000000), math.min(s.weights, 1e9)
if joins and a.leave == 0 then s.members, s.weights = s.members + 1, s.weights + m.weight end
-- What members may send alone that are forgotten: they may be cut off, and not gone. One that comes
-- back takes its part out of it.
s.lost = math.min(s.lost, s.ceiling) * 2 ^ ((s.lost_at - now) / SECOND / HALVES)
s.lost_at = now
if joins then s.lost = math.max(0, s.lost - a.alone) end
m.alone = math.min(m.alone, s.ceiling)
-- No member asked for so long that leases have died: the engine was away, and it is not for the
-- members to pay. What was minted then is dropped, since they may have gone on alone.
local away = not is_file and now - s.last > a.absent / 2
if away then s.woke = now end

-- Rule 2: what a cut takes.
local function cut()
  return math.min(0.1 + 1 / math.sqrt(math.max(s.peak, 0.001)), 0.45, 0.18 + 0.06 * s.peak)
end

local function within(rate) return math.max(math.min(rate, s.ceiling), math.min(a.floor, s.ceiling)) end

-- How long a starved rate takes to double on its way back, and how long that way is.
local function ramp_step() return math.max(0.25, 2 * s.trip / SECOND) end
local function ramp_length() return math.min(s.ramp * ramp_step(), AGED) end

-- Rule 19: the exponent of growth, and what it comes to after so many calms.
local function power() return 1 + 2 * math.min(1, s.calm / 40) end
local function growth(calms) return math.max(0.01, 1 / s.calm) * calms ^ power() end

local function is_shut() return s.mode >= SHUT_SECONDS end

-- Rules 2, 3, 4 and 6. While the service is shut it is the rate that shares go by: none is minted.
local function rate_at(t)
  if s.peak == 0 then return within(math.max(a.initial, s.rise)) end
  if s.mode == OPEN then return within(s.peak * (1 + growth(s.calms))) end
  if is_shut() then return within(s.peak) end
  local elapsed, trip = math.max(t - s.since, 0) / SECOND, (s.trip + s.longest) / SECOND
  local ramp = ramp_length()
  if elapsed < ramp then
    -- Straight lines between powers of two.
    local steps = (ramp - elapsed) / ramp_step()
    local whole = math.ceil(steps)
    return within(s.peak * (1 - cut()) * (1 + whole - steps) / 2 ^ whole)
  end
  elapsed = elapsed - ramp
  local requests = math.min(math.max(15 / s.peak, 2.5), 12)
  local back, doubling = math.max(requests, 8 * trip), math.max(requests, 4 * trip)
  local factor
  if elapsed < back then
    factor = 1 - cut() * (1 - elapsed / back) ^ 5
  else
    factor = 1 + math.min((elapsed - back) / doubling, 64) ^ 3
  end
  local line = math.min(0.15 * math.sqrt(s.peak), 0.06 * s.peak) * math.min(elapsed, 4096)
  -- A peak that nothing has confirmed for so long is no estimate any more: the limit is looked for
  -- by doubling. The core's law ends there, by rule 10; a fleet always limits.
  local aged = math.min(math.max(elapsed - AGED, 0) / 2.5, 64)
  return within((s.peak * factor + line) * 2 ^ aged)
end

-- One token to grant, and room for the part of the next that is minted until it is asked for.
local function most() return math.max(2, rate_at(now) * s.burst / SECOND) end

-- Mints at the rate that the time since the last step began with. In a pause nothing is minted, nor
-- while the service is shut. Time whose tokens found no room was not used, and is in no cycle.
local function unused(span)
  s.opened, s.idle = math.min(s.opened + span, now), s.idle + span
end
local minted = math.max(0, now - math.max(s.last, s.pause, s.shut)) / SECOND * rate_at(s.last)
if is_shut() then minted, s.tokens = 0, 0 end
if s.mode == OPEN and s.shut > s.last then unused(math.min(now, s.shut) - s.last) end
local full = math.min(s.tokens, most()) + minted
if s.mode == OPEN then
  local idle = away and now - s.last or math.max(0, full - most()) / rate_at(s.last) * SECOND
  if idle > 0 then unused(idle) else s.idle = 0 end
end
s.tokens = away and 0 or math.min(full, most())
local forgets, forgotten = math.exp((s.last - now) / SECOND / FORGET), math.exp((m.seen - now) / SECOND / FORGET)
s.last = now

-- What is left to a member of its part after throttles that were its own: it doubles in each
-- second.
local function own() return math.min(1, m.own * 2 ^ math.min((now - m.cut) / SECOND, 64)) end

local function share_now()
  local reserve = 0.1 * rate_at(now) * m.weight / math.max(s.weights, m.weight)
  return math.min(math.max(m.demand, reserve), s.level * m.weight * own())
end

-- The lease that keeps the steps of all members within what is asked of the engine.
local function load() return math.min(2 * s.members / STEPS, 30) * SECOND end

local function answer(grant)
  local share = share_now()
  return {grant, math.floor(share * 1000), math.floor(rate_at(now) * 1000), s.members, joins and 1 or 0, math.floor(m.alone * 1000), math.floor(load()),
    math.floor(s.ceiling * 1000), math.floor(math.max(0, s.slot - now)), math.ceil(math.max(0, m.start - now)),
    (is_shut() or now < s.shut) and math.ceil(math.max(0, is_shut() and s.due - now or 0, s.shut - now)) + 1 or 0,
    m.knock > 0 and 1 or 0}
end

s.slot = math.max(math.min(s.slot, now + 30 * SECOND) + SECOND / STEPS, now)

-- A lease that was asked for again is the same lease.
if not joins and a.seq == m.seq then return answer(m.grant) end
if not joins and a.seq < m.seq then return redis.error_reply('STALE the lease is not the last one') end

-- For how long the window before the current one counts: as long as eight responses take at its
-- rate, from a second to eight.
local function kept() return math.max(1, math.min(8, 8 / s.before)) end

-- What was delivered: of what was spent, all that was not throttled.
local function deliver()
  local delivered, lasted = math.max(0, a.spent - a.throttled), (now - s.window) / SECOND
  s.count, s.delivered = s.count + delivered, s.delivered + delivered
  if lasted >= 1 and (s.count >= 32 or lasted >= 8) then
    -- A long window that has many responses, or few while the law is starved, had a gap in between.
    local starved = (now - s.since) / SECOND < ramp_length()
    local gap = s.before > 0 and lasted >= 2 and (starved or s.count > 32)
    if not gap then s.before = s.count / lasted end
    s.count, s.window = 0, now
    -- Where nothing is limited a cycle is of the last minute; and one ends with a silence.
    if s.mode == SECONDS and (s.peak == 0 and now - s.opened > 60 * SECOND or lasted >= 16) then s.opened, s.taken = now, 0 end
  end
  if s.opened == 0 then s.opened = now end
  s.taken = math.max(0, s.taken + a.spent - a.throttled)
  if s.mode == OPEN then s.calms = s.calms + delivered / s.calm end
  local most = 8 * s.ceiling + 100
  s.sent, s.thrown = math.min(s.sent * forgets, most) + a.spent, math.min(s.thrown * forgets, most) + a.throttled
  m.sent, m.thrown = math.min(m.sent * forgotten, most) + a.spent, math.min(m.thrown * forgotten, most) + a.throttled
end

-- Whether throttles are this member's alone: the others should have had three by now, and had less
-- than a quarter of that share. One throttle is not held against a member while others have some as
-- well.
local function is_sick()
  local sent, thrown = math.max(0, s.sent - m.sent), math.max(0, s.thrown - m.thrown)
  return sent * m.thrown >= 3 * m.sent and 4 * thrown * m.sent < (m.thrown - math.min(1, thrown)) * sent
end

local function cut_own()
  if now - a.age <= m.cut or now - m.cut < SECOND / 2 then return end
  m.own, m.cut = math.max(own() / 2, 0.01), now
end

local function responses() return s.count + (s.before > 0 and s.before * kept() or 0) end

-- The rate delivered in the last window and the current one, with `more` responses on top.
local function delivered_rate(more)
  local span, count = (now - s.window) / SECOND, s.count + more
  if s.before > 0 then span, count = span + kept(), count + s.before * kept() end
  return count / math.max(span, 1 / SECOND)
end

-- Rule 20: the calm of a service that opens, after `count` answers if that was a cycle of windows.
local function calm_of(rate, count)
  local usual = 40 * (1 + rate * (s.trip + s.longest) / SECOND)
  local calm = usual * math.min(1, rate) ^ 0.75
  if count then calm = math.max(calm, math.min(count / 1.5, usual), count / 2) end
  return math.max(1, calm)
end

-- Goes on by seconds, at `peak`: rule 21.
local function by_seconds(peak, ramp)
  local halvings = math.ceil(math.log(peak / math.max(a.floor, 0.001)) / math.log(2))
  s.mode, s.peak, s.ramp = SECONDS, math.max(within(peak), 0.001), math.max(0, math.min(ramp, 8, halvings))
  s.since, s.delivered, s.granted, s.drained = now, 0, 0, 0
end

-- Rule 16: shut from `heard` on, which is when a hint ends or now. What a fleet tells comes a lease
-- later.
local function wait_for(wait, heard)
  s.trip = math.min(a.trip, 60 * SECOND)
  local longest = math.max(LONGEST, (now - s.opened) / 32)
  s.wait = math.min(math.max(wait, s.trip + s.longest), longest, SECOND / math.max(a.floor, 1e-6))
  s.heard, s.refusal = heard, heard > now and heard or now - a.age
  s.due, s.knock, s.asked = heard + s.wait, 0, 0
end

local function shut(mode, wait, heard)
  s.mode, s.knocked, s.tokens, s.starts, s.drained, s.since = mode, 0, 0, 0, 0, now
  wait_for(wait, heard)
end

-- The first refusal, of a rate that is not known by windows.
local function shut_first(heard)
  local wait = heard > now and 0 or 4 * SECOND
  if s.taken > 0 then wait = math.min((now - s.opened) / s.taken, 60 * SECOND) end
  s.light = now - s.opened
  shut(SHUT_SECONDS, wait, heard)
end

-- What a throttle says while cycles are counted.
local function refused(sent, heard)
  if s.mode == OPEN then
    if sent >= s.since then
      s.most = rate_at(now)
      shut(SHUT, SECOND / s.peak, heard)
    end
  elseif s.knock > 0 and sent >= s.knock then
    local count = s.mode == SHUT and s.taken or math.min(s.taken, 1200)
    local doubles = s.knocked == 0 or (s.mode == SHUT_SECONDS and s.wait < SECOND / 2)
    s.knocked = 1
    wait_for(s.wait + (doubles and s.wait or s.wait * 400 / (400 + count)), heard)
  elseif heard > math.max(now, s.heard) then
    s.heard, s.refusal, s.due = heard, heard, heard + s.wait
  end
end

-- Rules 17, 18, 20 and 21: a knock that was sent at `sent` was done. It is the first of what follows.
local function open(sent)
  -- Of a pause it is not known when in it a refusal was sent.
  local gap = s.refusal >= s.heard and math.huge or math.max(sent - s.refusal, 1)
  local at = math.max((s.refusal + sent) / 2, s.opened)
  local count, span = math.max(s.taken - s.asked, 1), math.max(at - s.opened, SECOND / 1000)
  local own, grown = count / span * SECOND, s.most
  if s.knocked > 0 and s.wait >= LONGEST then gap = gap / 2 end
  local function by_gap(mean) return count > 2 and mean or math.max(mean, SECOND / gap) end
  local before, was_of_seconds = s.weighs, s.mode == SHUT_SECONDS
  s.opened, s.taken, s.tokens, s.idle, s.knock, s.asked = at, 1, 0, 0, 0, 0
  if was_of_seconds then
    s.weighs = span
    local dark = span - s.light
    local short = s.knocked == 0 and (dark < SECOND or count <= 2) and (before == 0 or count >= 8)
    local outage = dark < s.light and math.abs(before - span) >= span / 4
    if outage or (s.peak >= 1 and short) then return by_seconds(s.peak, 2) end
    local mean = by_gap(own)
    s.peak = math.max(within(mean), 0.001)
    s.calm = calm_of(s.peak, mean < 1 and s.light < span / 8 and count or nil)
  else
    local kept = math.max(0, 1 - math.max(count, s.peak * span / SECOND) / (2 * s.calm))
    s.weighs = span + before * kept
    local mean, last = (count + s.peak * before * kept / SECOND) / s.weighs * SECOND, grown
    local lags = grown > s.peak * (1 + growth(4)) or own > 1.3 * s.peak
    local rate = count >= 20 and lags and last > own and math.sqrt(own * last) or by_gap(mean)
    local calm = s.calm
    s.peak = math.max(within(math.min(math.max(rate, s.peak / 2), last)), 0.001)
    s.calm = calm_of(s.peak, count)
    if count >= 5 then s.calm = math.max(s.calm, calm * 7 / 8) end
  end
  s.mode, s.calms, s.since, s.ramp = OPEN, 0, now, 0
end

-- Rules 19 and 21: what has grown, and time that was not used.
local function grow()
  local rate = rate_at(now)
  if s.idle > math.max(SECOND / rate, s.trip + s.longest) then
    if s.calms > 1 then s.peak = within(s.peak * (1 + math.min(1, growth(s.calms) / (power() + 1)))) end
    s.calms, s.idle = 0, 0
  elseif s.taken >= 32 and s.peak >= 2 and growth(s.calms) >= 0.5 and now - s.opened > 2 * s.weighs then
    by_seconds(rate, 0)
    s.peak = within(rate / (1 - cut()))
  elseif s.calms >= 64 then
    s.peak, s.calms = within(rate), 0
    s.calm = calm_of(s.peak)
  end
end

-- Rules 1, 5, 6, 8 and 9. A fleet's round trip is that of a request and a lease on top: what was
-- granted before a cut is spent, and told, after it. So the count of what was delivered since is
-- short at first, and no ground for an estimate.
local function throttle()
  local sent, span = now - a.age, now - s.since
  if s.mode ~= SECONDS then return refused(sent, now + math.min(a.pause, 60 * SECOND)) end
  local trip, resumes = math.min(a.trip, 60 * SECOND), now + math.min(a.pause, 60 * SECOND)
  local hinted, paused = a.pause > 0, s.since > 0 and s.since == s.pause
  local function pause()
    s.since, s.pause, s.delivered, s.granted = resumes, resumes, 0, 0
  end
  if s.peak > 0 and (sent <= s.since or span < 2 * (trip + s.longest)) then
    if hinted and paused and span < 0 and resumes > s.pause then pause() end
    return
  end
  local first = s.peak == 0
  local at, count, expected = rate_at(math.min(sent, now)), s.delivered, s.granted
  local nothing = (expected >= 4 and count == 0) or (expected >= 32 and count * 8 < expected)
  local starves = (s.ramp > 0 and count == 0) or nothing
  local pauses = hinted and (starves or (paused and count == 0))
  if s.peak == 0 then pauses = hinted and responses() == 0 end
  -- Rule 6: a law of seconds has too few here, or nothing gets through.
  local few = s.peak
  if first then few = responses() > 0 and delivered_rate(1) or 1
  elseif responses() >= 6 then few = math.min(few, delivered_rate(0)) end
  if (starves or few < 1 or (pauses and not first)) and within(first and at or s.peak) > a.floor then
    if first then s.peak = math.max(within(few), 0.001) end
    -- The cuts of the last two seconds were made while nothing got through any more.
    if starves and s.ramp == 0 and span < 2 * SECOND then s.peak = math.max(s.peak, math.min(s.crest, s.ceiling)) end
    return shut_first(pauses and resumes or now)
  end
  if s.peak > 0 and not starves and expected < 32 and span < SECOND / 10 then return end
  if s.ramp == 0 then s.crest = math.max(span < 2 * SECOND and s.crest or 0, at) end
  local average = (count + 2) / math.max(span, 1) * SECOND
  local steady = math.min(rate_at(now), s.peak, expected / math.max(span, 1) * SECOND)
  if first then
    if s.before > 0 and responses() >= 8 then s.peak = delivered_rate(1) else s.peak, s.ramp = at, 2 end
  elseif s.ramp > 0 then
    s.peak, s.ramp = math.min(math.max(average, 0.7 * at), at), 0
  elseif average < 0.75 * steady and span > 5 * s.longest and span < 2 * SECOND then
    s.peak = average
  elseif responses() >= 6 and delivered_rate(0) >= 0.57 * at then
    s.peak = math.min(delivered_rate(0), at)
  else
    s.peak = at
  end
  s.peak = math.max(within(s.peak), 0.001)
  -- No more halvings than lead to the floor; and than a fleet makes up for within three seconds.
  local halvings = math.ceil(math.log(s.peak / math.max(a.floor, 0.001)) / math.log(2))
  s.ramp = math.max(0, math.min(s.ramp, 8, halvings))
  m.own = 1
  s.drained = first and not hinted and s.ramp > 0 and now or 0
  s.since, s.trip, s.delivered, s.granted, s.done, s.refused = now, trip, 0, 0, 0, 0
  if pauses then pause() end
end

-- Rule 13: the first cut, corrected by what is told in the trip after it. A report does not say when
-- the requests were sent that were not throttled: they are taken for ones that took a trip.
local function drain()
  local trip, after = s.trip + s.longest, now - s.since
  if after <= trip then
    if after < trip / 4 then return end
    s.done, s.refused, s.drained = s.done + math.max(0, a.spent - a.throttled), s.refused + a.throttled, now
    return
  end
  local served = s.done * SECOND / (0.75 * math.max(s.drained - s.since, 1))
  local enough = s.done >= 8 and s.done + s.refused >= 16 and s.refused > 0
  if enough and s.ramp > 0 and 2 * served < s.peak then
    s.peak, s.ramp = math.max(within(2 * served), 0.001), 1
  end
  s.drained = 0
end

-- What the scope had learned its members remember.
if is_new and s.ceiling >= UNKNOWN and a.known > 0 then
  s.mode, s.peak, s.opened, s.since = OPEN, math.max(within(a.known), 0.001), now, now
  s.calm = calm_of(s.peak)
end
deliver()
if is_shut() and s.knock > 0 and s.knock == m.knock and a.spent > 0 then s.asked = 1 end
if s.mode == OPEN then grow() end
if s.drained > 0 then drain() end
-- What turned out to be a throttle of all was not the fault of the members that had it first.
if m.own < 1 and m.cut <= s.since and s.since - m.cut < SECOND then m.own = 1 end
if a.throttled > 0 then
  if is_sick() then cut_own() else throttle() end
end
-- A knock was done. Where successes are not told, that is one that was sent and not refused.
if is_shut() and s.knock > 0 then
  if a.done > 0 and now - a.done >= s.knock then
    open(now - a.done)
  elseif s.asked > 0 and now >= s.due then
    open(s.knock)
  end
end
if not is_shut() then s.tokens = math.min(s.tokens + a.back, most()) end
-- A plan is spent, whatever was saved up.
if a.shut > 0 then s.shut, s.tokens = math.max(s.shut, now + math.min(a.shut, MONTH)), 0 end

-- The turn: members that have been silent for too long are forgotten, and the level is found up to
-- which everyone's demand is met. Its cost grows with the members, so that it comes more seldom
-- with many.
local function turn()
  local all = redis.call('HGETALL', key)
  local each, weights = {{demand = m.demand, weight = m.weight}}, m.weight
  s.out, s.lent, s.longest, s.burst = m.out, m.alone, a.lease, a.burst
  for i = 1, #all, 2 do
    local name = all[i]
    if string.sub(name, 1, 1) == 'm' and name ~= member then
      local other = part_of(all[i + 1])
      if not other then return broken(name) end
      -- Tokens are good for half of this: see `Settings::reach`. A foreign record is one of a member
      -- that is silent, and is gone within a minute.
      local lease = math.min(other.lease, math.max(10 * SECOND, load()))
      local absent = math.max(math.min(other.absent, 60 * SECOND), 6 * lease)
      local silent = math.abs(now - math.max(other.seen, s.woke))
      if silent > absent then
        redis.call('HDEL', key, name)
        s.lost = s.lost + math.min(other.alone, s.ceiling)
      else
        s.lent = s.lent + math.min(other.alone, s.ceiling)
        local weight = math.max(1, math.min(other.weight, 1000))
        weights = weights + weight
        -- A busy member asks twice in its lease. One that has missed that wants nothing, until it
        -- asks again.
        local missed = silent > math.max(SECOND / 2, lease)
        each[#each + 1] = {demand = missed and 0 or other.demand, weight = weight}
        if other.out > 0 and now - other.seen > absent / 2 then
          local whole = member_of(all[i + 1])
          if not whole then return broken(name) end
          other.out, whole.out = 0, 0
          redis.call('HSET', key, name, text(whole, MEMBER))
        end
        s.out, s.longest = s.out + other.out, math.max(s.longest, lease)
        s.burst = math.max(s.burst, math.min(other.burst, 10 * SECOND))
      end
    end
  end
  s.members, s.weights = #each, weights
  s.ceiling, s.lowest = s.lowest, a.ceiling
  local rate = rate_at(now)
  local least = 0.1 * rate / weights
  -- By what each wants for a unit of its weight.
  for _, one in ipairs(each) do one.unit = math.max(one.demand / one.weight, least) end
  -- The level rises while more are met below it.
  s.level = 0
  local level = rate / weights
  while level > s.level do
    local rest, left, most = rate, 0, 0
    for _, one in ipairs(each) do
      if one.unit <= level then
        rest, most = rest - one.unit * one.weight, math.max(most, one.unit)
      else
        left = left + one.weight
      end
    end
    -- Where all are met, what is left is there for anyone.
    s.level, level = level, left > 0 and rest / left or 0
    if left == 0 then s.level = most + rest end
  end
  s.turn = now + math.max(SECOND / 4, #each * 250)
end

local function close(...)
  redis.call('HSET', key, 's', text(s, SCOPE), ...)
  redis.call('PEXPIRE', key, math.max(a.keep, math.ceil((s.shut - now) / 1000)))
end

if a.leave > 0 then
  if not joins then
    if m.knock > 0 and m.knock == s.knock and s.asked == 0 then s.due = math.min(s.due, now) end
    redis.call('HDEL', key, member)
    s.members, s.weights = math.max(0, s.members - 1), math.max(0, s.weights - m.weight)
    s.out, s.lent = math.max(0, s.out - m.out), math.max(0, s.lent - m.alone)
    s.turn = 0
  end
  close()
  return {0, 0, 0, s.members, 0}
end

m.demand = own() < 1 and s.level > 0 and math.min(a.demand, own() * s.level * m.weight) or a.demand
if now >= s.turn or (joins and s.members < 64) then
  local wrong = turn()
  if wrong then return wrong end
end

-- A member's own part grows at its share, up to what it may hold; where that is one token there is
-- room for the part of the next. A newcomer need not wait for its first. Of what no other member
-- takes it may have more,
local share = share_now()
m.lease, m.burst = math.max(a.lease, load()), a.burst
local hold = math.max(1, share * m.lease / SECOND)
if m.seen < s.woke then m.credit = 0 end
m.credit = math.min(m.credit + math.max(0, now - math.max(m.seen, s.woke)) / SECOND * share, math.max(hold, 2))
if joins then m.credit = hold end
local part = math.min(m.credit, hold - a.held)
-- once the members that were alone are back.
if now - s.woke > a.absent / 4 and own() == 1 then part = math.max(part, s.tokens - most() / 2) end
-- All together hold no more than the longest lease at the allowance, and a token each. What a silent
-- member was granted counts until it has died.
local others = math.max(0, s.out - m.out)
s.longest = math.max(s.longest, m.lease)
local room = s.ceiling * s.longest / SECOND + s.members - others - a.held
-- Of many members an eighth of what is kept is for newcomers: few ask too seldom to do without it.
local there = (joins or s.members < 64) and s.tokens or s.tokens - most() / 8
-- One that has sent nothing yet is a newcomer still, for one token. Those that find none stand in a
-- line: each has the next token that no other has. Who has sent leaves one while there is a line.
if is_shut() then
  there = 0
elseif m.sent == 0 and a.held == 0 and a.want > 0 then
  if m.start == 0 then
    m.start = math.max(now, s.starts, now + (1 - s.tokens) / rate_at(now) * SECOND)
    if m.start > now then s.starts = m.start + SECOND / rate_at(now) end
  end
  -- Where there are two, one is left by one that did not come.
  there = (now >= m.start or s.tokens >= 2) and math.max(there, math.min(s.tokens, 1)) or 0
elseif s.starts > now then
  there = math.min(there, s.tokens - 1)
end
local grant = math.max(0, math.floor(math.min(a.want, part, there, room)))
if now < math.max(s.pause, s.shut) then grant = 0 end
if m.knock ~= s.knock then m.knock = 0 end
if is_shut() and now >= math.max(s.due, s.shut) and a.want > 0 and a.held == 0 and a.demand > 0 then
  -- One request asks for all. Time in which none was there to ask is in no cycle.
  local late = now - s.due -- with what a plan was spent
  -- It may weigh more than a token.
  grant = math.max(1, math.min(a.head, a.want))
  m.start, s.opened, s.refusal, s.heard = 0, math.min(s.opened + late, now), s.refusal + late, s.heard + late
  s.knock, s.asked, s.due, m.knock = now, 0, now + s.wait, now
elseif a.want > grant and s.peak == 0 and s.ceiling >= UNKNOWN and s.tokens - grant < most() / 2 + 1 and now >= s.shut and now - s.since >= SECOND / 2 then
  -- Rule 14: what is used up doubles, until the first throttle.
  s.rise, s.since = 2 * rate_at(now), now
end
s.tokens, s.granted = math.max(0, s.tokens - grant), s.granted + grant
m.credit = math.max(0, m.credit - grant)
if grant > 0 and m.start > 0 and m.knock == 0 then
  m.start = math.min(m.start, now)
  -- What one before it has left is there for the next to start.
  if s.tokens >= 1 then s.starts = math.max(0, s.starts - SECOND / rate_at(now)) end
end
-- What is not there is not owed: a long lease would save that up, and a short one could not.
if part > there then m.credit = math.min(m.credit, 1) end
m.out = a.held + grant
s.out = others + m.out
-- What it may send without the engine: its share, as far as that is not lent to others. So all that
-- are cut off, in any order, never send more than the rate together.
local lent = math.max(0, s.lent - m.alone)
m.alone = now < s.shut and 0 or math.max(0, math.min(share, rate_at(now) - lent - s.lost))
s.lent = lent + m.alone
m.seen, m.seq, m.grant = now, a.seq, grant
close(member, text(m, MEMBER))
return answer(grant)
