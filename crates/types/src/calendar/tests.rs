use super::*;

#[test]
fn every_end_of_the_date_range_round_trips() {
    for (date, text) in [
        (0, "-5877641-06-23"),
        (u32::MAX, "+5881580-07-11"),
        (1 << 31, "1970-01-01"),
        ((1 << 31) - 1, "1969-12-31"),
        (0x8000_4777, "2020-02-03"),
    ] {
        let mut printed = String::new();
        print_date(date, &mut printed);
        assert_eq!(printed, text);
        assert_eq!(parse_date(text), Ok(date));
    }
    for text in [
        "",
        "2020-02-30",
        "2020-13-01",
        "20-01-01",
        "2020-1-1",
        "+5881580-07-12",
        "+2020-01-01",
        "02020-01-01",
        "99999-01-01",
        "-0000-01-01",
        "2020-00-01",
        "2020-01-00",
        "2020-01-01x",
        "-1",
        "4294967296",
    ] {
        assert!(parse_date(text).is_err(), "{text}");
    }
}

#[test]
fn timestamps_are_read_in_all_their_forms() {
    let millis = 1_296_705_900_000; // 2011-02-03T04:05Z
    for text in [
        "1296705900000",
        "2011-02-03 04:05+0000",
        "2011-02-03 04:05:00+0000",
        "2011-02-03 04:05:00.000+0000",
        "2011-02-03T04:05+0000",
        "2011-02-03T04:05:00Z",
        "2011-02-03T04:05:00.000+00:00",
        "2011-02-03 05:05 CET",
        "2011-02-03 04:05 UTC",
        "2011-02-03T06:05:00.0+02",
        "2011-02-02T23:35:00-0430",
        "2011-02-03 4:5:0.",
        "2011-02-03 004:05 Z",
        "2011-02-03 05:05 GMT+01",
        "2011-02-03 04:05",
    ] {
        assert_eq!(parse_timestamp(text), Ok(millis), "{text}");
    }
    assert_eq!(parse_timestamp("2011-02-03"), Ok(millis - 245 * 60_000));
    assert_eq!(parse_timestamp("2011-02-03+0000"), Ok(millis - 245 * 60_000));
    assert_eq!(
        parse_timestamp("2011-02-03T04:05:00.123456789Z"),
        Ok(millis + 123)
    );
    for text in [
        "",
        "x",
        "2011-02-03T",
        "2011-02-03 25:00",
        "2011-02-03 04:05 XYZ",
        "99999999999999999999",
        "2011-02-03 24:01",
        "2011-02-03 04:05:60",
        "2011-02-32",
        "2011-02-03 04:05UTC",
        "2011-02-03 04:05 z",
        "2011-02-03 04:05+18:01",
        "2011-02-03 +4:05",
        "02011-02-03",
        "2011-02-03 04:05+1:00",
        "999999999-01-01",
    ] {
        assert!(parse_timestamp(text).is_err(), "{text}");
    }
}

#[test]
fn time_zones_are_known_by_name_with_their_summer_time() {
    for (text, means) in [
        ("2011-02-03 04:05 CET", "2011-02-03 04:05+01"),
        ("2011-07-03 04:05 CET", "2011-07-03 04:05+02"),
        ("2011-02-03 04:05 CEST", "2011-02-03 04:05+01"),
        ("2011-07-03 EST", "2011-07-03-04"),
        (
            "2011-07-03T04:05:06.789 America/New_York",
            "2011-07-03T04:05:06.789-04",
        ),
        ("2011-07-03 04:05 Asia/Kolkata", "2011-07-03 04:05+05:30"),
        ("2011-07-03 04:05 Zulu", "2011-07-03 04:05Z"),
        // Skipped and shown twice.
        ("2011-03-27 02:30 Europe/Berlin", "2011-03-27 02:30+01"),
        ("2011-10-30 02:30 Europe/Berlin", "2011-10-30 02:30+02"),
        ("2011-03-26 24:00 Europe/Berlin", "2011-03-27 00:00+01"),
        ("2011-10-29 24:00 Europe/Berlin", "2011-10-30 00:00+02"),
        // Before there were zones; years beyond those of the database.
        ("1700-07-03 04:05:28 Europe/Berlin", "1700-07-03 03:12Z"),
        ("-20000-07-03 04:05:28 Europe/Berlin", "-20000-07-03 03:12Z"),
        ("-20000-02-29 04:05:28 Europe/Berlin", "-20000-02-29 03:12Z"),
        ("9999-07-03 04:05 Europe/Berlin", "9999-07-03 04:05+02"),
        ("+20011-07-03 04:05 Europe/Berlin", "+20011-07-03 04:05+02"),
        ("+20011-12-03 04:05 Europe/Berlin", "+20011-12-03 04:05+01"),
    ] {
        let means = parse_timestamp(means);
        assert_eq!(parse_timestamp(text), means, "{text}");
        assert!(means.is_ok(), "{text}");
    }
    for zone in ["est", "america/new_york", "IST", "BST", "Mars/Phobos", ""] {
        let text = format!("2011-07-03 04:05 {zone}");
        assert!(parse_timestamp(&text).is_err(), "{text}");
    }
}

#[test]
fn a_timestamp_may_have_a_day_that_its_month_does_not_have() {
    for (text, means) in [
        ("2011-02-31", "2011-02-28"),
        ("2100-02-29", "2100-02-28"),
        ("2012-02-30 01:00", "2012-02-29 01:00"),
        ("2011-04-31", "2011-04-30"),
        ("-2023-02-31", "-2023-02-28"),
        ("2011-12-31 24:00", "2012-01-01"),
        ("2011-02-31 24:00:00.0+0100", "2011-02-28 23:00"),
    ] {
        assert_eq!(parse_timestamp(text), parse_timestamp(means), "{text}");
        assert!(parse_timestamp(means).is_ok(), "{means}");
    }
}

#[test]
fn every_timestamp_prints() {
    for (millis, text) in [
        (0, "1970-01-01 00:00:00.000Z"),
        (-1, "1969-12-31 23:59:59.999Z"),
        (-62_135_596_800_000, "0001-01-01 00:00:00.000Z"),
        (i64::MAX, "+292278994-08-17 07:12:55.807Z"),
        (i64::MIN, "-292275055-05-16 16:47:04.192Z"),
    ] {
        let mut printed = String::new();
        print_timestamp(millis, ' ', &mut printed);
        assert_eq!(printed, text);
        assert_eq!(parse_timestamp(text), Ok(millis));
    }
}

#[test]
fn times_of_day_round_trip() {
    for (nanos, text) in [
        (0, "00:00:00.000000000"),
        (NANOS_PER_DAY - 1, "23:59:59.999999999"),
    ] {
        let mut printed = String::new();
        print_time(nanos, &mut printed);
        assert_eq!(printed, text);
        assert_eq!(parse_time(text), Ok(nanos));
    }
    assert_eq!(parse_time("01:02:03"), Ok(3_723_000_000_000));
    for text in ["01:02:03.5", "1:2:3.5", "001:+02:3.500", " 01:02:03.5 "] {
        assert_eq!(parse_time(text), Ok(3_723_500_000_000), "{text}");
    }
    for text in [
        "",
        "24:00:00",
        "01:02",
        "01:02:60",
        "01:02:03.",
        "1::3",
        "01:02:-3",
        "01:02:03.1234567890",
        "-1",
        "86400000000000",
    ] {
        assert!(parse_time(text).is_err(), "{text}");
    }
}
