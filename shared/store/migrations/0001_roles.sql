-- The roles, one per function, and who owns the schema.
--
-- Roles belong to the whole server, and several databases of one server may be
-- migrated at the same moment: whoever comes second finds them made. They cannot
-- log in until an operator says how (IAM on AWS, trust on a developer's machine).
do $$
declare
    role_name text;
begin
    foreach role_name in array array[
        'hookstead_owner', 'hookstead_receiver', 'hookstead_worker', 'hookstead_relay',
        'hookstead_maintenance', 'hookstead_admin', 'hookstead_publisher', 'hookstead_support'
    ] loop
        if not exists (select from pg_catalog.pg_roles where rolname = role_name) then
            begin
                execute format('create role %I nologin', role_name);
            exception when duplicate_object or unique_violation then
                null; -- another database of this server was first
            end;
        end if;
    end loop;
end
$$;

-- Every session of a role is bounded, so that no forgotten transaction holds back
-- vacuum or a lock for long. Temporary objects come last in the search path, so
-- that they can never stand in for one of ours.
do $$
declare
    setting record;
begin
    for setting in
        select format('hookstead_%s', r.name) as role_name, s.name, s.value
        from (values
            ('owner', '0', '5s', '60s'),
            ('receiver', '5s', '2s', '5s'),
            ('worker', '60s', '5s', '60s'),
            ('relay', '30s', '5s', '30s'),
            ('maintenance', '600s', '2s', '60s'),
            ('admin', '15s', '2s', '15s'),
            ('publisher', '30s', '5s', '60s'),
            ('support', '30s', '2s', '30s')
        ) as r (name, statement_timeout, lock_timeout, idle_timeout)
        cross join lateral (values
            ('statement_timeout', r.statement_timeout),
            ('lock_timeout', r.lock_timeout),
            ('idle_in_transaction_session_timeout', r.idle_timeout),
            ('search_path', 'hookstead, pg_temp')
        ) as s (name, value)
    loop
        for attempt in 1..20 loop
            exit when exists (
                select
                from pg_catalog.pg_db_role_setting c
                join pg_catalog.pg_roles r on r.oid = c.setrole
                where c.setdatabase = 0
                  and r.rolname = setting.role_name
                  and format('%s=%s', setting.name, setting.value) = any (c.setconfig)
            );
            begin
                if setting.name = 'search_path' then
                    execute format('alter role %I set search_path = hookstead, pg_temp', setting.role_name);
                else
                    execute format('alter role %I set %I = %L', setting.role_name, setting.name, setting.value);
                end if;
            exception when internal_error or unique_violation or object_in_use or serialization_failure then
                -- "tuple concurrently updated": another database of this server is
                -- writing the same row. Look again; it writes the same value.
                if attempt = 20 then
                    raise;
                end if;
            end;
        end loop;
    end loop;
end
$$;

-- A migrating user that is no superuser must be able to act as the owner. Having
-- made a role is not enough for that since PostgreSQL 16, which tells apart who
-- administers a role and who may become it.
do $$
declare
    kind text := case
        when current_setting('server_version_num')::integer >= 160000 then 'SET'
        else 'MEMBER'
    end;
begin
    if not (select rolsuper from pg_catalog.pg_roles where rolname = current_user)
        and not (
            pg_catalog.pg_has_role(current_user, 'hookstead_owner', kind)
            and pg_catalog.pg_has_role(current_user, 'hookstead_owner', 'USAGE')
        )
    then
        execute format('grant hookstead_owner to %I', current_user);
    end if;
end
$$;

alter schema hookstead owner to hookstead_owner;
alter table hookstead.schema_migrations owner to hookstead_owner;

-- Nobody has anything unless a later migration grants it.
revoke all on schema hookstead from public;
alter default privileges for role hookstead_owner revoke execute on functions from public;
alter default privileges for role hookstead_owner revoke usage on types from public;
