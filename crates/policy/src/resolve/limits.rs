//! Merging amounts, kernel features and the record.

use super::Merge;
use crate::document::{Document, Entry};
use crate::file::LimitsSection;
use crate::{Audit, KernelFeatures, Layer, Limits, PolicyError, Record};

impl Merge<'_> {
    pub(super) fn limits(&mut self) -> Result<(Limits, KernelFeatures, Audit), PolicyError> {
        let (mut limits, mut kernel, mut audit) =
            (Limits::default(), KernelFeatures::default(), Audit::default());
        for document in &self.stack.documents {
            merge_limits(&mut limits, &document.file.limits, document.trusted);
            merge_audit(&mut audit, document);
            self.merge_kernel(&mut kernel, document);
        }
        self.merge_typed(&mut limits)?;
        bound_by_system(&mut limits, &self.stack.documents);
        Ok((limits, kernel, audit))
    }

    fn merge_kernel(&mut self, kernel: &mut KernelFeatures, document: &Document) {
        let Some(wanted) = &document.file.kernel.nested_userns else { return };
        if document.trusted || !*wanted.get_ref() {
            kernel.nested_userns = *wanted.get_ref();
        } else if !kernel.nested_userns {
            let origin = document.origin(wanted.span().start, "true");
            self.not_heard("kernel.nested_userns = true", origin);
        }
    }

    fn merge_typed(&self, limits: &mut Limits) -> Result<(), PolicyError> {
        if self.typed.pids == Some(0) {
            return Err(Entry::typed("--pids", "0").error("nothing could run", "--pids 512"));
        }
        limits.cpus = self.typed.cpus.or(limits.cpus);
        limits.memory = self.typed.memory.or(limits.memory);
        limits.pids = self.typed.pids.or(limits.pids);
        limits.time = self.typed.time.or(limits.time);
        Ok(())
    }
}

fn merge_limits(limits: &mut Limits, section: &LimitsSection, trusted: bool) {
    refine(&mut limits.cpus, section.cpus, trusted);
    refine(&mut limits.memory, section.memory, trusted);
    refine(&mut limits.pids, section.pids.map(std::num::NonZero::get), trusted);
    refine(&mut limits.disk, section.disk, trusted);
    refine(&mut limits.time, section.time, trusted);
    match section.strict {
        Some(strict) if trusted || strict => limits.strict = strict,
        _ => {}
    }
}

/// A trusted value replaces the one before it; an untrusted one only lowers it.
fn refine<T: PartialOrd + Copy>(limit: &mut Option<T>, wanted: Option<T>, trusted: bool) {
    *limit = match (*limit, wanted) {
        (Some(now), Some(wanted)) if !trusted && now < wanted => Some(now),
        (now, wanted) => wanted.or(now),
    };
}

/// The system policy's limits hold whatever came after.
fn bound_by_system(limits: &mut Limits, documents: &[Document]) {
    for document in documents.iter().filter(|document| document.layer == Layer::System) {
        merge_limits(limits, &document.file.limits, false);
    }
}

/// An untrusted document may ask for a longer and fuller record, not for less.
fn merge_audit(audit: &mut Audit, document: &Document) {
    let section = &document.file.audit;
    let longer = |wanted| document.trusted || audit.retention.is_some_and(|now| now < wanted);
    if let Some(retention) = section.retention.filter(|wanted| longer(*wanted)) {
        audit.retention = Some(retention);
    }
    let fuller = |wanted| document.trusted || wanted == Record::Everything;
    if let Some(record) = section.record.filter(|wanted| fuller(*wanted)) {
        audit.record = record;
    }
}
