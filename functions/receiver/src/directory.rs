//! The sources, as last read from the database.
//!
//! All of them are read in one go: there are few, and a name that is not among
//! them then costs nothing, however many unknown names somebody tries. Two
//! ages bound how old an answer can be: a known source is used for
//! `fresh_for`, and an unknown name causes a new reading at most once in
//! `unknown_for`.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};

use hookstead_domain::{EventTypePattern, is_recent};
use hookstead_signing::Scheme;
use hookstead_store::{SourceRecord, StoreError};

use time::{Duration, OffsetDateTime};
use tokio::sync::Mutex as AsyncMutex;

use crate::dedupe::DedupeRule;

/// How old the directory may get.
#[derive(Clone, Copy, Debug)]
pub struct DirectoryLimits {
    /// Age up to which a known source is used without asking.
    pub fresh_for: Duration,
    /// Age up to which an unknown name is refused without asking.
    pub unknown_for: Duration,
}

impl Default for DirectoryLimits {
    /// A source that is switched off stops within 30 s; a new one works within 5 s.
    fn default() -> Self {
        Self {
            fresh_for: Duration::seconds(30),
            unknown_for: Duration::seconds(5),
        }
    }
}

/// A source that takes events, ready to verify.
pub(crate) struct Source {
    pub(crate) record: SourceRecord,
    /// `None` where the stored scheme or dedupe rule cannot be read; such a source refuses everything.
    pub(crate) scheme: Option<Scheme>,
    pub(crate) dedupe: DedupeRule,
    allowed: Vec<EventTypePattern>,
}

impl Source {
    fn new(record: SourceRecord) -> Self {
        let scheme = match &record.scheme {
            Some(own) => Scheme::from_json(&own.to_string()).ok(),
            None => hookstead_signing::builtin(&record.kind).cloned(),
        };
        let dedupe = match &record.dedupe_rule {
            Some(rule) => rule.parse().ok(),
            None => Some(DedupeRule::OfKind),
        };
        // A rule that cannot be read must not fall back to another one: refuse instead.
        let scheme = scheme.zip(dedupe.as_ref()).map(|(mut scheme, dedupe)| {
            dedupe.apply_to(&mut scheme);
            scheme
        });
        if scheme.is_none() {
            tracing::error!(source.name = %record.name, source.kind = %record.kind,
                "the scheme or the dedupe rule of a source cannot be read; it refuses every request");
        }
        let allowed = record
            .allowed_event_types
            .iter()
            .filter_map(|pattern| pattern.parse().ok())
            .collect();
        Self {
            record,
            scheme,
            dedupe: dedupe.unwrap_or_default(),
            allowed,
        }
    }

    /// Whether this source takes events of this type. An empty list takes all.
    pub(crate) fn allows(&self, event_type: &str) -> bool {
        // An entry that is no pattern allows nothing, so the list as stored decides emptiness.
        self.record.allowed_event_types.is_empty()
            || self
                .allowed
                .iter()
                .any(|pattern| pattern.matches(event_type))
    }
}

#[derive(Default)]
struct Snapshot {
    by_name: HashMap<String, Arc<Source>>,
    read_at: Option<OffsetDateTime>,
}

impl Snapshot {
    fn is_younger_than(&self, limit: Duration, now: OffsetDateTime) -> bool {
        self.read_at.is_some_and(|at| is_recent(at, limit, now))
    }
}

/// The sources by name.
pub(crate) struct Directory {
    limits: DirectoryLimits,
    snapshot: RwLock<Arc<Snapshot>>,
    reading: AsyncMutex<()>,
}

impl Directory {
    pub(crate) fn new(limits: DirectoryLimits) -> Self {
        Self {
            limits,
            snapshot: RwLock::default(),
            reading: AsyncMutex::default(),
        }
    }

    /// Finds the enabled source of this name; `read` reads all enabled sources.
    ///
    /// While the database cannot be read, a source that was known is still
    /// used: its event cannot be stored anyway unless the database comes back.
    pub(crate) async fn find<R>(
        &self,
        name: &str,
        now: OffsetDateTime,
        read: impl FnOnce() -> R,
    ) -> Result<Option<Arc<Source>>, StoreError>
    where
        R: Future<Output = Result<Vec<SourceRecord>, StoreError>>,
    {
        if let Some(answer) = self.answer_from_memory(name, now) {
            return Ok(answer);
        }
        let _one_at_a_time = self.reading.lock().await;
        if let Some(answer) = self.answer_from_memory(name, now) {
            return Ok(answer);
        }
        match read().await {
            Ok(records) => {
                let by_name = records
                    .into_iter()
                    .map(|record| (record.name.to_string(), Arc::new(Source::new(record))))
                    .collect();
                let snapshot = Arc::new(Snapshot {
                    by_name,
                    read_at: Some(now),
                });
                let found = snapshot.by_name.get(name).cloned();
                *self
                    .snapshot
                    .write()
                    .unwrap_or_else(PoisonError::into_inner) = snapshot;
                Ok(found)
            }
            Err(error) => self.known(name).map(Some).ok_or(error),
        }
    }

    /// The source as it was last read, however long ago.
    pub(crate) fn known(&self, name: &str) -> Option<Arc<Source>> {
        self.current().by_name.get(name).cloned()
    }

    fn current(&self) -> Arc<Snapshot> {
        // The lock only guards an exchange of pointers, so a poisoned one is still good.
        Arc::clone(&self.snapshot.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// `None` where the database has to be asked.
    fn answer_from_memory(&self, name: &str, now: OffsetDateTime) -> Option<Option<Arc<Source>>> {
        let snapshot = self.current();
        match snapshot.by_name.get(name) {
            Some(source) if snapshot.is_younger_than(self.limits.fresh_for, now) => {
                Some(Some(Arc::clone(source)))
            }
            None if snapshot.is_younger_than(self.limits.unknown_for, now) => Some(None),
            _ => None,
        }
    }
}
