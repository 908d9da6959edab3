//! `verify`: checks SSTables and reports damage with file and offset.

use std::io::Write;
use std::sync::Arc;

use anyhow::bail;
use ilion_env::Env;
use ilion_sstable::Descriptor;
use ilion_sstable::verify::{Verification, verify, work_bytes};

use super::arguments::Files;
use super::progress::Progress;
use super::source::descriptors;

pub(super) fn run(env: &Arc<dyn Env>, files: &Files, out: &mut dyn Write) -> anyhow::Result<()> {
    let descriptors = descriptors(env.as_ref(), &files.files)?;
    let mut damaged = 0;
    for descriptor in &descriptors {
        let mut progress = Progress::new("verify", work_bytes(env.as_ref(), descriptor));
        let outcome = verify(env.as_ref(), descriptor, &mut |done| progress.at(done));
        drop(progress);
        let verification = outcome?;
        report(descriptor, &verification, out)?;
        damaged += usize::from(!verification.findings.is_empty());
    }
    if damaged > 0 {
        out.flush()?;
        bail!("{damaged} of {} SSTables are damaged", descriptors.len());
    }
    Ok(())
}

fn report(descriptor: &Descriptor, verification: &Verification, out: &mut dyn Write) -> anyhow::Result<()> {
    let findings = &verification.findings;
    let verdict = if findings.is_empty() { "ok" } else { "DAMAGED" };
    writeln!(
        out,
        "{descriptor}: {verdict}; {} partitions, {} rows and markers were read",
        verification.partitions, verification.unfiltereds
    )?;
    for finding in findings.kept() {
        writeln!(out, "  {finding}")?;
    }
    if findings.more() > 0 {
        writeln!(out, "  and {} more", findings.more())?;
    }
    for unchecked in &verification.unchecked {
        writeln!(out, "  not checked: {unchecked}")?;
    }
    Ok(())
}
