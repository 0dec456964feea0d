import { once } from 'node:events'
import { createLimiter } from '../create/create-limiter.ts'
import type { Limiter } from '../limiter.ts'
import type { SourceDocument, SourceKind } from '../sources/source.ts'

/** A limiter whose rules and clock a test moves. */
export interface ChangingLimiter {
  readonly limiter: Limiter
  readonly time: { ms: number }
  /** Puts other rules in force. */
  change(rules: readonly object[]): Promise<void>
  close(): Promise<void>
}

/** Creates a limiter whose rules come from a source that the test writes; counts in memory, or in the Redis of a URL. */
export async function changingLimiter(
  rules: readonly object[],
  {
    startMs,
    redis,
    prefix,
  }: { readonly startMs: number; readonly redis?: string | undefined; readonly prefix?: string },
): Promise<ChangingLimiter> {
  const time = { ms: startMs }
  let version = 0
  let publish = (_: SourceDocument): void => {}
  const documentOf = (some: readonly object[]): SourceDocument => {
    return { text: JSON.stringify({ rules: some }), version: `${++version}` }
  }
  const center: SourceKind = {
    name: 'center',
    options: {},
    create: () => ({
      name: 'center',
      async *watch() {
        yield documentOf(rules)
        while (true) {
          yield await new Promise<SourceDocument>(resolve => {
            publish = resolve
          })
        }
      },
    }),
  }
  const limiter = await createLimiter({
    clock: () => time.ms,
    identify: { account: ['attribute:account'] },
    ...(redis !== undefined && { store: { redis, timeout: '5s', ...(prefix !== undefined && { prefix }) } }),
    rules: [],
    remote: { center: 'here' },
    sources: [center],
  })
  if (limiter.rules.length !== rules.length)
    throw new Error(
      `the first rules are rejected: ${JSON.stringify(limiter.status().sources)} ${JSON.stringify(rules)}`,
    )
  return {
    limiter,
    time,
    async change(some) {
      const done = new AbortController()
      const taken = once(limiter.events, 'rules', done)
      const rejected = once(limiter.events, 'rejected', done).then(([, mistakes]) => {
        throw new Error(`the rules are rejected: ${JSON.stringify(mistakes)}`)
      })
      publish(documentOf(some))
      await Promise.race([taken, rejected]).finally(() => done.abort())
      await rejected.catch(() => {})
    },
    close: () => limiter.close(),
  }
}
