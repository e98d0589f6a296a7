//! What a profile file says, rule by rule. The rules are those of `profile-parser-tests.json` in
//! smithy-rs, the test data that the AWS SDKs share; for names those of botocore's
//! `configloader.py`.

use paceline::aws_config::{ProfileFile, ProfileFileKind};

/// Writes a file's profiles and properties out, sorted.
fn shown(kind: ProfileFileKind, text: &str) -> String {
    let file = ProfileFile::parse(kind, "a/file", text).unwrap();
    let profile = |name| {
        let properties = file.properties(name);
        let properties = properties.map(|(key, value)| format!(" {key}={value:?}"));
        format!("[{name}]{}", properties.collect::<String>())
    };
    file.profiles().map(profile).collect::<Vec<_>>().join(" ")
}

fn config(text: &str) -> String {
    shown(ProfileFileKind::Config, text)
}

fn credentials(text: &str) -> String {
    shown(ProfileFileKind::Credentials, text)
}

/// What one property line comes to.
fn property(line: &str) -> String {
    let shown = config(&format!("[default]\n{line}"));
    shown.trim_start_matches("[default]").trim().to_owned()
}

#[test]
fn file_of_nothing_has_no_profiles() {
    for text in ["", "\n\n", " \t \r\n", "# only\n; comments\n#", "\r\n"] {
        assert_eq!(config(text), "", "{text:?}");
    }
}

#[test]
fn config_profiles_are_default_and_those_with_the_prefix() {
    assert_eq!(config("[default]\na=1"), r#"[default] a="1""#);
    assert_eq!(config("[profile x]\na=1"), r#"[x] a="1""#);
    assert_eq!(config("[profile x]"), "[x]", "without properties");
}

#[test]
fn config_sections_of_other_names_are_ignored() {
    for header in [
        "[x]",
        "[profilex]",
        "[profile]",
        "[]",
        "[Profile x]",
        "[DEFAULT]",
    ] {
        let text = format!("[profile y]\nb=2\n{header}\na=1\n a\n[profile z]");
        assert_eq!(config(&text), r#"[y] b="2" [z]"#, "{header}");
    }
    assert_eq!(config("[sso-session s]\na=1\n[services t]\nb=2"), "");
}

#[test]
fn credentials_profiles_are_bare_names() {
    let text = "[x]\na=1\n[default]\nb=2\n[profilez]\n";
    assert_eq!(credentials(text), r#"[default] b="2" [profilez] [x] a="1""#);
    assert_eq!(credentials("[]\nb=2"), "");
    let spaces = "[profile x]\na=1\n[y z]\n[\"q\"]";
    assert_eq!(credentials(spaces), r#"["q"] [profile x] a="1" [y z]"#);
}

#[test]
fn whitespace_inside_the_brackets_is_trimmed() {
    for header in [
        "[profile \tx \t]",
        "[profile\tx]",
        "[ \tprofile  x ]",
        "[profile x] \t",
    ] {
        assert_eq!(config(header), "[x]", "{header:?}");
    }
    assert_eq!(config("[ default\t]"), "[default]");
    assert_eq!(credentials("[ \tx\t ]"), "[x]");
}

#[test]
fn names_are_one_word_of_any_characters() {
    for name in ["ABCXYZabcxyz0189_-/.%@:+", "x!", "é", "x]", "x\u{a0}y", "*"] {
        let want = format!("[{name}]");
        assert_eq!(config(&format!("[profile {name}]")), want);
        assert_eq!(credentials(&want), want);
    }
}

#[test]
fn names_in_quotes_are_of_anything_else() {
    for (header, name) in [
        (r#"[profile "my profile"]"#, "my profile"),
        ("[profile 'my profile']", "my profile"),
        (r#"[profile "it's"]"#, "it's"),
        (r#"[profile 'a "b" \']"#, r#"a "b" \"#),
        (r#"[profile " x "]"#, " x "),
        (r#"[profile "x"]"#, "x"),
    ] {
        assert_eq!(
            config(&format!("{header}\na=1")),
            format!(r#"[{name}] a="1""#)
        );
    }
    let twice = "[profile x]\na=1\n[profile 'x']\nb=2";
    assert_eq!(config(twice), r#"[x] a="1" b="2""#);
    let default = "[profile 'default']\na=1\n[default]\nb=2";
    assert_eq!(config(default), r#"[default] a="1""#);
}

#[test]
fn names_that_cannot_be_read_are_ignored() {
    for header in [
        "[profile my profile]",
        r#"[profile "my profile]"#,
        r#"[profile my" "profile]"#,
        r#"[profile "a" b]"#,
        r#"[profile "a"b"]"#,
        r"[profile my\ profile]",
        r#"[profile "a\\b"]"#,
        r#"[profile ""]"#,
        r#"[profile "]"#,
    ] {
        let text = format!("# first\n{header}\na=1\nin valid=2");
        assert_eq!(config(&text), "", "{header}");
    }
    let ignored = "[x]
[default]
a=1
[profile default]
b!=2
[sso-session y z]
[]";
    assert_eq!(config(ignored), "[default]");
    assert_eq!(
        credentials(
            "[y z]
in valid=1
[]
b!=1"
        ),
        "[y z]"
    );
}

#[test]
fn keys_are_of_certain_characters_and_in_lower_case() {
    assert_eq!(
        property("ABCXYZabcxyz0189_-/.%@:+ = v"),
        r#"abcxyzabcxyz0189_-/.%@:+="v""#
    );
    for key in ["in valid", "x!", "É", "[x", "x\u{a0}"] {
        let text = format!("[default]\nk=v\n{key} = 1\n more\nl=w");
        let starts_section = key.starts_with('[');
        if !starts_section {
            assert_eq!(config(&text), r#"[default] k="v" l="w""#, "{key}");
        }
    }
}

#[test]
fn keys_and_values_are_trimmed() {
    assert_eq!(property("k \t=  \tv w \t"), r#"k="v w""#);
    assert_eq!(
        property("k=\u{a0}v"),
        "k=\"\\u{a0}v\"",
        "space and tab only"
    );
}

#[test]
fn value_may_be_empty_or_hold_more_equals_signs() {
    assert_eq!(property("k ="), r#"k="""#);
    assert_eq!(property("k = v=w=="), r#"k="v=w==""#);
    assert_eq!(property("k = 😂"), r#"k="😂""#);
}

#[test]
fn lines_may_end_as_on_windows() {
    let text = "# c\r\n[profile x]\r\na = 1\r\n 2\r\n\r\nb = 3";
    assert_eq!(config(text), r#"[x] a="1\n2" b="3""#);
}

#[test]
fn blank_lines_are_ignored() {
    let text = "\t \n[profile x]\n\t\n \na = 1\n\t \n 2\n\n[profile y]\n \t";
    assert_eq!(config(text), r#"[x] a="1\n2" [y]"#);
}

#[test]
fn lines_may_be_comments() {
    let text = "# a\n; b\n[default]\n#k = 1\n;k = 2\nl = 3\n# between\n 4\n";
    assert_eq!(config(text), r#"[default] l="3\n4""#);
}

#[test]
fn comment_behind_a_property_needs_whitespace_before_it() {
    for line in ["k = v # c", "k = v\t; c", "k = v #", "k = v # c ; d # e"] {
        assert_eq!(property(line), r#"k="v""#, "{line}");
    }
    assert_eq!(property("k = v# c"), r#"k="v# c""#);
    assert_eq!(property("k = v; c"), r#"k="v; c""#);
    assert_eq!(property("k = v#c #d"), r#"k="v#c""#);
    assert_eq!(property("k = #c"), r#"k="""#);
    assert_eq!(property("k =#c"), r##"k="#c""##);
}

#[test]
fn comment_behind_a_section_may_touch_it() {
    for comment in ["# c", ";c", " # c ]", "\t;", "; c # d"] {
        assert_eq!(
            config(&format!("[profile x]{comment}\na=1")),
            r#"[x] a="1""#
        );
    }
}

#[test]
fn indented_line_continues_the_value() {
    let text = "[default]\na = 1\n -2 \t\n\t# 3 ; 4\nmax_attempts = 5";
    let want = r#"[default] a="1\n-2\n# 3 ; 4" max_attempts="5""#;
    assert_eq!(config(text), want);
}

#[test]
fn indented_setting_is_a_continuation() {
    let text = "[default]\nregion = x\n  max_attempts = 5\n [profile y]";
    let want = r#"[default] region="x\nmax_attempts = 5\n[profile y]""#;
    assert_eq!(config(text), want);
}

#[test]
fn sub_properties_stay_text() {
    let text = "[default]\ns3 =\n name = value\n\t \n in valid =\n n=m # c\nk = v";
    let want = r#"[default] k="v" s3="\nname = value\nin valid =\nn=m # c""#;
    assert_eq!(config(text), want);
}

#[test]
fn sections_of_one_name_are_one_profile() {
    let text = "[profile x]\na=1\n[profile y]\n[profile  x]\nb=2";
    assert_eq!(config(text), r#"[x] a="1" b="2" [y]"#);
}

#[test]
fn last_value_of_a_key_counts() {
    assert_eq!(config("[default]\na=1\na=2"), r#"[default] a="2""#);
    assert_eq!(
        config("[default]\na=1\n[default]\na=2"),
        r#"[default] a="2""#
    );
    assert_eq!(
        config("[default]\nA=1\na=2\n[default]\nA=3"),
        r#"[default] a="3""#
    );
    assert_eq!(
        config("[default]\na=1\n 2\na=3"),
        r#"[default] a="3""#,
        "all of it"
    );
}

#[test]
fn prefixed_default_takes_the_place_of_the_plain_one() {
    let want = r#"[default] a="1""#;
    assert_eq!(config("[profile default]\na=1\n[default]\nb=2"), want);
    assert_eq!(config("[default]\nb=2\n[profile default]\na=1"), want);
    assert_eq!(config("[default]\nb=2\n[profile default]"), "[default]");
    let twice = "[profile default]\na=1\n[default]\nb=2\n[profile default]\nc=3";
    assert_eq!(config(twice), r#"[default] a="1" c="3""#);
}

#[test]
fn file_answers_for_one_key() {
    let file = ProfileFile::parse(
        ProfileFileKind::Config,
        "a/file",
        "[profile x]\nK=\n[default]",
    );
    let file = file.unwrap();
    assert_eq!(file.path().to_str(), Some("a/file"));
    assert_eq!(file.get("x", "k"), Some(""));
    assert_eq!(file.get("x", "l"), None);
    assert_eq!(file.get("y", "k"), None);
    assert!(file.contains("default") && !file.contains("y"));
}
