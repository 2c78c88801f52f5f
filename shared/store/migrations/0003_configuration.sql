-- What operators write: where events come from and where they go.
set local role hookstead_owner;

create table hookstead.sources (
    source_id uuid primary key default gen_random_uuid(),
    name text not null,
    -- The signing kind: one of the built-in kinds, or any name beside a scheme.
    kind text not null,
    -- A scheme of the customer's own. Null: the built-in one of that kind.
    scheme jsonb,
    -- Where the secret is kept, never the secret.
    secret_ref text,
    -- The URL as it is registered at the provider; some schemes sign it.
    public_url text,
    -- Overrides the kind's official freshness window.
    tolerance_s integer,
    -- Patterns with '*'. Empty: every type.
    allowed_event_types text[] not null default '{}',
    -- Overrides the kind's rule for the deduplication key.
    dedupe_rule text,
    -- Whose events these are. Copied to every event.
    tenant text,
    schema_version text not null default '1',
    retired_schema_versions text[] not null default '{}',
    -- Whether status reports may name the provider and the event type.
    report_event_type boolean not null default false,
    created_at timestamptz not null default now(),
    updated_at timestamptz not null default now(),
    disabled_at timestamptz,
    constraint sources_name_key unique (name),
    constraint sources_name_shape check (name ~ '^[a-z0-9][a-z0-9_-]{0,63}$'),
    constraint sources_kind_shape check (kind ~ '^[a-z0-9][a-z0-9_.-]{0,63}$'),
    constraint sources_scheme_shape check (jsonb_typeof(scheme) = 'object'),
    constraint sources_secret_ref_length check (char_length(secret_ref) between 1 and 2048),
    constraint sources_public_url_shape check (public_url ~ '^https?://' and char_length(public_url) <= 2048),
    constraint sources_tolerance_range check (tolerance_s between 0 and 604800),
    constraint sources_allowed_event_types_shape check (
        cardinality(allowed_event_types) <= 500 and array_position(allowed_event_types, null) is null),
    constraint sources_dedupe_rule_length check (char_length(dedupe_rule) between 1 and 256),
    constraint sources_tenant_length check (char_length(tenant) between 1 and 128),
    constraint sources_schema_version_length check (char_length(schema_version) between 1 and 64),
    constraint sources_retired_schema_versions_shape check (
        array_position(retired_schema_versions, null) is null
        and schema_version <> all (retired_schema_versions))
);

create table hookstead.subscriptions (
    subscription_id uuid primary key default gen_random_uuid(),
    name text not null,
    -- Null: events of every tenant. Otherwise only of this one.
    tenant text,
    -- Null: events of every source.
    source_id uuid references hookstead.sources (source_id),
    -- Patterns with '*'. Empty: every type.
    event_types text[] not null default '{}',
    event_type_patterns text[] not null
        generated always as (hookstead.like_patterns(event_types)) stored,
    -- Null: every payload, also one that could not be parsed.
    payload_filter jsonpath,
    -- {"kind": "http" | "handler" | "pull" | …}; further keys belong to the kind.
    destination jsonb not null,
    -- Signing secrets, encrypted under the named data key.
    secret_current bytea,
    secret_current_key text,
    secret_previous bytea,
    secret_previous_key text,
    previous_until timestamptz,
    retry_policy jsonb not null default hookstead.default_retry_policy(),
    -- The schema version this consumer was written for. Null: the source's own.
    schema_version text,
    -- Most deliveries per second. Null: no limit.
    rate_limit_per_s integer,
    paused_until timestamptz,
    consecutive_failures integer not null default 0,
    first_failure_at timestamptz,
    created_at timestamptz not null default now(),
    updated_at timestamptz not null default now(),
    disabled_at timestamptz,
    disabled_reason text,
    constraint subscriptions_name_key unique (name),
    constraint subscriptions_name_shape check (name ~ '^[a-z0-9][a-z0-9_-]{0,63}$'),
    constraint subscriptions_tenant_length check (char_length(tenant) between 1 and 128),
    constraint subscriptions_event_types_shape check (
        cardinality(event_types) <= 500 and array_position(event_types, null) is null),
    constraint subscriptions_destination_shape check (
        jsonb_typeof(destination) = 'object' and jsonb_typeof(destination -> 'kind') = 'string'
        and destination ->> 'kind' ~ '^[a-z][a-z0-9_-]{0,31}$'),
    constraint subscriptions_secret_current_whole check ((secret_current is null) = (secret_current_key is null)),
    constraint subscriptions_secret_previous_whole check (
        num_nonnulls(secret_previous, secret_previous_key, previous_until) in (0, 3)
        and (secret_previous is null or secret_current is not null)),
    constraint subscriptions_retry_policy_shape check (hookstead.is_retry_policy(retry_policy)),
    constraint subscriptions_schema_version_length check (char_length(schema_version) between 1 and 64),
    constraint subscriptions_rate_limit_range check (rate_limit_per_s between 1 and 100000),
    constraint subscriptions_failures_whole check (
        consecutive_failures >= 0 and (consecutive_failures > 0) = (first_failure_at is not null)),
    constraint subscriptions_disabled_reason_shape check (
        disabled_reason ~ '^[a-z][a-z0-9_]{0,63}$' and disabled_at is not null
        or disabled_reason is null)
);

-- `apply` and the web console look subscriptions up by their source.
create index subscriptions_source_id_idx on hookstead.subscriptions (source_id);
