//! The dashboard and the page that documents its metrics agree.

#[test]
fn every_metric_of_the_dashboard_is_documented() {
    let page = include_str!("../../OPERATIONS.md");
    let dashboard = include_str!("../../dashboard.json");
    let is_word = |byte: char| byte.is_ascii_alphanumeric() || byte == '_';
    let mut metrics = 0;
    for part in dashboard.split("paceline_fleet_").skip(1) {
        let name = part.split(|byte| !is_word(byte)).next().unwrap_or_default();
        assert!(page.contains(&format!("`paceline_fleet_{name}`")), "{name}");
        metrics += 1;
    }
    assert_eq!(metrics, 15);
}
