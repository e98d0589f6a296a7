//! Lines of a profile file that mean nothing.

use paceline::aws_config::{
    ProfileFile,
    ProfileFileFault::{
        self, NoEquals, NoName, NothingToContinue, OutsideSection, SubPropertyNoEquals,
        SubPropertyNoName, UnclosedSection,
    },
    ProfileFileKind,
};

#[track_caller]
fn refuses(text: &str, line: usize, fault: ProfileFileFault) {
    for kind in [ProfileFileKind::Config, ProfileFileKind::Credentials] {
        let error = ProfileFile::parse(kind, "a/file", text).unwrap_err();
        assert_eq!(error.line(), line, "{text:?}");
        assert_eq!(error.fault(), fault, "{text:?}");
        assert_eq!(error.file().to_str(), Some("a/file"));
    }
}

#[test]
fn section_has_to_end_with_its_bracket() {
    for header in [
        "[default",
        "[",
        "[profile x # ]",
        "[profile x] y",
        "[profile x#y]",
    ] {
        refuses(&format!("# first\n{header}\na=1"), 2, UnclosedSection);
    }
}

#[test]
fn property_needs_a_section() {
    refuses("a = 1\n[default]", 1, OutsideSection);
    refuses("\r\n\r\na\r\n", 3, OutsideSection);
    refuses(" a = 1", 1, OutsideSection);
}

#[test]
fn property_needs_an_equals_sign() {
    for line in ["key : value", "key", "key # = value", "\u{a0}"] {
        refuses(&format!("[default]\na=1\n{line}"), 3, NoEquals);
    }
}

#[test]
fn property_needs_a_name() {
    for line in ["= value", "=", "=\n x=1"] {
        refuses(&format!("[default]\n{line}"), 2, NoName);
    }
}

#[test]
fn continuation_needs_a_property_of_its_own_section() {
    refuses("[default]\n a = 1", 2, NothingToContinue);
    refuses("[default]\n # c", 2, NothingToContinue);
    refuses("[x]\na=1\n[x]\n\n -2", 5, NothingToContinue);
}

#[test]
fn sub_property_needs_an_equals_sign() {
    for line in ["invalid", "# c", "in # = v"] {
        refuses(
            &format!("[default]\ns3 =\n a=1\n {line}"),
            4,
            SubPropertyNoEquals,
        );
    }
}

#[test]
fn sub_property_needs_a_name() {
    refuses("[default]\ns3 = # c\n = v", 3, SubPropertyNoName);
}

#[test]
fn ignored_sections_have_to_be_well_formed_too() {
    refuses("[in valid]\nkey", 2, NoEquals);
    refuses("[in valid]\nin valid =\n x", 3, SubPropertyNoEquals);
}

#[test]
fn first_bad_line_is_the_one_that_is_named() {
    refuses("[default]\na\n[\n = 1", 2, NoEquals);
}

#[test]
fn error_says_where_and_keeps_secrets() {
    let text = "[default]\naws_secret_access_key: wJalr";
    let error = ProfileFile::parse(ProfileFileKind::Config, "~/x", text).unwrap_err();
    assert_eq!(error.to_string(), "~/x:2: a property without '='");
    assert!(!format!("{error:?}").contains("wJalr"));
}
