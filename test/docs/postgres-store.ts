import type { LedgerChange, TransactionalStore } from 'diana-limiter/store'

/** The part of `pg` that is used. */
export interface Pool {
  connect(): Promise<{
    query(text: string, values?: readonly unknown[]): Promise<{ readonly rows: readonly Record<string, unknown>[] }>
    release(isBroken?: boolean): void
  }>
}

export const schema = `
  create table if not exists ledgers (key text collate "C" primary key, ledger text not null, until timestamptz not null);
  create index if not exists ledgers_until on ledgers (until)`

/** Keeps ledgers in a table. From time to time: `delete from ledgers where until < now()`. */
export class PostgresStore implements TransactionalStore {
  readonly #pool: Pool

  constructor(pool: Pool) {
    this.#pool = pool
  }

  async transact(keys: readonly string[], change: LedgerChange): Promise<void> {
    const client = await this.#pool.connect()
    let isBroken = true
    try {
      await client.query('begin')
      await client.query(
        'select pg_advisory_xact_lock(id) from (select distinct hashtextextended(key, 0) id from unnest($1::text[]) key order by id) ids',
        [keys],
      )
      const { rows } = await client.query(
        `select extract(epoch from clock_timestamp()) * 1000 as now,
          (select json_object_agg(key, ledger) from ledgers where key = any($1::text[])) as ledgers`,
        [keys],
      )
      const { now, ledgers } = rows[0] as { now: string; ledgers: Record<string, string> | null }
      const writes = change(new Map(Object.entries(ledgers ?? {})), Number(now))
      const kept = writes.filter(({ ledger }) => ledger !== undefined)
      const deleted = writes.filter(({ ledger }) => ledger === undefined)
      if (deleted.length > 0) {
        await client.query('delete from ledgers where key = any($1::text[])', [deleted.map(({ key }) => key)])
      }
      if (kept.length > 0) {
        await client.query(
          `insert into ledgers select key, ledger, clock_timestamp() + ms * interval '1 ms'
            from unnest($1::text[], $2::text[], $3::float8[]) as kept (key, ledger, ms)
            on conflict (key) do update set ledger = excluded.ledger, until = excluded.until`,
          [kept.map(({ key }) => key), kept.map(({ ledger }) => ledger), kept.map(({ keepMs }) => keepMs)],
        )
      }
      await client.query('commit')
      isBroken = false
    } finally {
      // a connection that is thrown away rolls back
      client.release(isBroken)
    }
  }

  async keys(prefix: string, most: number): Promise<string[]> {
    const client = await this.#pool.connect()
    const text = 'select key from ledgers where starts_with(key, $1) limit $2'
    const { rows } = await client.query(text, [prefix, most]).finally(() => client.release())
    return rows.map(({ key }) => String(key))
  }
}
