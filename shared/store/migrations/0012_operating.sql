-- What operators and their tools look for: what is new, and who made a subscription.
set local role hookstead_owner;

-- Both tables grow in the order of these times, so a summary per range of pages
-- finds the last minutes, and costs writers next to nothing.
create index attempts_ended_at_idx on hookstead.attempts
    using brin (ended_at) with (pages_per_range = 32, autosummarize = on);
create index done_deliveries_terminal_at_idx on hookstead.done_deliveries
    using brin (terminal_at) with (pages_per_range = 32, autosummarize = on);

-- Whose entry it is. What a manifest no longer names is disabled; what a command
-- added is none of the manifest's business until it names it.
alter table hookstead.subscriptions add column managed_by text not null default 'manifest';
alter table hookstead.subscriptions add constraint subscriptions_managed_by_known
    check (managed_by in ('manifest', 'command'));
