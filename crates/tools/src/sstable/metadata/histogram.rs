//! Histograms like those of `sstablemetadata`: bars, then percentiles. The buckets of the percentiles grow by a fifth.

use super::style::Style;
use super::units::{bytes, date};

const BAR_WIDTH: f64 = 30.0;
const BUCKETS: usize = 165;

/// A histogram to print.
pub(super) struct Histogram {
    title: &'static str,
    bins: Vec<(u64, u64)>,
    name: fn(u64, Style) -> String,
}

pub(super) fn drop_times(secs: u64, style: Style) -> String {
    let date = i64::try_from(secs).ok().filter(|secs| *secs != 0).map(date);
    format!("{secs} {}", style.quiet(date))
}

pub(super) fn partition_sizes(size: u64, style: Style) -> String {
    format!("{size} {}", style.quiet(bytes(size)))
}

pub(super) fn plain_number(number: u64, _: Style) -> String {
    number.to_string()
}

impl Histogram {
    /// A histogram of values and their counts, ascending.
    pub(super) fn new(
        title: &'static str,
        bins: impl Iterator<Item = (u64, u64)>,
        name: fn(u64, Style) -> String,
    ) -> Self {
        Self {
            title,
            bins: bins.filter(|(_, count)| *count > 0).collect(),
            name,
        }
    }

    pub(super) fn print(&self, style: Style, out: &mut String) {
        let (blue, cyan, reset) = (style.blue(), style.cyan(), style.reset());
        // Codes for colors do not count for the width.
        let widths: Vec<usize> = self
            .bins
            .iter()
            .map(|(value, _)| (self.name)(*value, Style::default()).len())
            .collect();
        let name_width = widths
            .iter()
            .copied()
            .chain([self.title.len()])
            .max()
            .unwrap_or(0);
        let counts = self.bins.iter().map(|(_, count)| count.to_string().len());
        let count_width = counts.chain([5]).max().unwrap_or(5);
        let percent_sign = style.quiet(Some("%".to_owned()));
        out.push_str(&format!(
            "   {blue}{:name_width$} {cyan}|{blue} {:count_width$}  {percent_sign}  {blue}Histogram{reset} \n",
            self.title, "Count"
        ));
        let greatest = self.bins.iter().map(|(_, count)| *count).max().unwrap_or(0);
        let sum = self
            .bins
            .iter()
            .fold(0u64, |sum, (_, count)| sum.saturating_add(*count));
        for (width, (value, count)) in widths.iter().zip(&self.bins) {
            let name = (self.name)(*value, style);
            let blanks = " ".repeat(name_width - width);
            let percent = style.quiet(Some(format!("{:3}", percent(*count, sum))));
            let bar = style.bar(share(*count, greatest) * BAR_WIDTH);
            out.push_str(&format!(
                "   {name}{blanks} {cyan}|{reset} {count:count_width$} {percent} {bar}\n"
            ));
        }
        self.print_percentiles(style, out);
    }

    fn print_percentiles(&self, style: Style, out: &mut String) {
        let buckets = Buckets::of(&self.bins);
        let (blue, reset) = (style.blue(), style.reset());
        out.push_str(&format!("{blue}   Percentiles{reset}\n"));
        let shares = [
            ("50th", 0.5),
            ("75th", 0.75),
            ("95th", 0.95),
            ("98th", 0.98),
            ("99th", 0.99),
        ];
        let percentiles = shares.map(|(name, share)| (name, buckets.percentile(share)));
        let ends = [("Min", buckets.least()), ("Max", buckets.greatest())];
        for (name, value) in percentiles.into_iter().chain(ends) {
            out.push_str(&format!(
                "   {blue}{name:10}{reset}{}\n",
                (self.name)(value, style)
            ));
        }
    }
}

#[expect(clippy::cast_precision_loss, reason = "a share")]
fn share(count: u64, whole: u64) -> f64 {
    count as f64 / whole as f64
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a share of 100"
)]
fn percent(count: u64, sum: u64) -> u64 {
    (100.0 * share(count, sum)) as u64
}

/// Counts in buckets that grow by a fifth.
struct Buckets {
    ends: Vec<u64>,
    counts: Vec<u64>,
}

impl Buckets {
    fn of(bins: &[(u64, u64)]) -> Self {
        let mut ends = vec![1u64];
        while let (Some(last), true) = (ends.last().copied(), ends.len() < BUCKETS) {
            ends.push(((last.saturating_mul(12) + 5) / 10).max(last + 1));
        }
        let mut counts = vec![0u64; BUCKETS + 1];
        for (value, count) in bins {
            let bucket = &mut counts[ends.partition_point(|end| end < value)];
            *bucket = bucket.saturating_add(*count);
        }
        Self { ends, counts }
    }

    fn end(&self, bucket: usize) -> u64 {
        self.ends.get(bucket).copied().unwrap_or(u64::MAX >> 1)
    }

    #[expect(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "the share is between 0 and 1"
    )]
    fn percentile(&self, share: f64) -> u64 {
        let sum = self
            .counts
            .iter()
            .fold(0u64, |sum, count| sum.saturating_add(*count));
        let wanted = (sum as f64 * share).ceil() as u64;
        let mut seen = 0u64;
        for (bucket, count) in self.counts.iter().enumerate() {
            seen = seen.saturating_add(*count);
            if wanted > 0 && seen >= wanted {
                return self.end(bucket);
            }
        }
        0
    }

    fn least(&self) -> u64 {
        match self.counts.iter().position(|count| *count > 0) {
            None | Some(0) => 0,
            Some(bucket) => self.end(bucket - 1) + 1,
        }
    }

    fn greatest(&self) -> u64 {
        let bucket = self.counts.iter().rposition(|count| *count > 0);
        bucket.map_or(0, |bucket| self.end(bucket))
    }
}
