import assert from 'node:assert/strict'
import type { CompiledRule } from '../rules/compile.ts'
import { type LocalCharge, localCharge, MemoryStore } from '../stores/memory/memory-store.ts'
import { refundLocal } from '../stores/memory/refund-local.ts'
import { resetsSoFar, type Table } from '../stores/memory/table.ts'
import { type RedisCounter, redisCharge } from '../stores/redis/counter.ts'
import type { RedisStore } from '../stores/redis/redis-store.ts'
import { compileRule } from './compile-rule.ts'
import type { TimelineRule } from './timeline.ts'

/** One event at a moment: a call, a refund of an earlier call, a reset of a caller, or changed options of the rule. */
export type Move =
  | {
      readonly at: number
      readonly cost?: number
      readonly key?: string
      readonly times?: number
      /** The name by which a later refund finds it. */
      readonly name?: string
      readonly expected: 'pass' | 'refuse'
      readonly remaining?: number
      readonly retryAfterMs?: number
    }
  | { readonly at: number; readonly refund: string; readonly cost?: number }
  | { readonly at: number; readonly reset: string }
  | { readonly at: number; readonly change: TimelineRule }

/** A table of moments in which more happens than calls. */
export interface AmendedTimeline {
  readonly title: string
  readonly rule: TimelineRule
  readonly moves: readonly Move[]
}

interface Answer {
  readonly allowed: boolean
  readonly remaining: number
  readonly retryUs: number
  readonly refund: (now: number, cost: number) => void
}

/** The store that a table is played on; moments are microseconds. */
export interface Stage {
  change(rule: CompiledRule, now: number): void | Promise<void>
  take(now: number, cost: number, key: string): Answer | Promise<Answer>
  reset(now: number, key: string): void | Promise<void>
}

export function memoryStage(options: TimelineRule): Stage {
  const store = new MemoryStore()
  const table: Table = store.createTable('rule', compileRule(options).meters)
  return {
    change: (rule, now) => void table.adopt(rule.meters, now, { keepsPast: true }),
    reset: (_now, key) => table.reset(key),
    take(now, cost, key) {
      const resetsBefore = resetsSoFar()
      const charge: LocalCharge = { ...localCharge(table), key, cost, mayWait: false }
      const allowed = store.take([charge], 1, now)
      const refund = (then: number, part: number): void => {
        refundLocal({ ...charge, cost: part, moment: now, resetsBefore }, then, 'all')
      }
      return { allowed, remaining: Math.min(...charge.remaining), retryUs: charge.wait, refund }
    },
  }
}

/** Creates a stage in Redis; `setNow` gets every moment, for the store's clock. */
export function redisStage(options: TimelineRule, store: RedisStore, setNow: (now: number) => void): Stage {
  let counter: RedisCounter = store.createCounter(compileRule(options))
  const arrival = async (): Promise<void> => void (await store.look([redisCharge(counter)]))
  return {
    async change(rule, now) {
      setNow(now)
      counter = store.createCounter(rule)
      await store.continued()
      await arrival()
    },
    async reset(now, key) {
      setNow(now)
      await store.reset(counter, key)
    },
    async take(now, cost, key) {
      setNow(now)
      const charge = { ...redisCharge(counter), key, cost, mayWait: false }
      const { allowed } = await store.take([charge])
      const charged = charge.counter
      const refund = (_then: number, part: number): void =>
        store.giveBack([{ counter: charged, key, cost: part, moment: now }])
      return { allowed, remaining: Math.min(...charge.remaining), retryUs: charge.wait, refund }
    },
  }
}

/** Plays a table from `startMs` on, and throws at the first answer that is not the expected one. */
export async function runAmended({ title, moves }: AmendedTimeline, stage: Stage, startMs: number): Promise<void> {
  const calls = new Map<string, { readonly answer: Answer; readonly cost: number }>()
  for (const [index, move] of moves.entries()) {
    const now = Math.round((startMs + move.at) * 1000)
    if ('change' in move) await stage.change(compileRule(move.change), now)
    else if ('reset' in move) await stage.reset(now, move.reset)
    else if ('refund' in move) {
      const { answer, cost } = calls.get(move.refund)!
      // moves the clock of a store that has one of its own
      await stage.take(now, 0, 'nobody')
      answer.refund(now, move.cost ?? cost)
    } else {
      const { cost = 1, key = 'caller', times = 1, name, expected, remaining, retryAfterMs } = move
      for (let call = 1; call <= times; call++) {
        const answer = await stage.take(now, cost, key)
        if (name !== undefined) calls.set(name, { answer, cost })
        const seen = [
          answer.allowed ? 'pass' : 'refuse',
          remaining === undefined ? undefined : answer.remaining,
          retryAfterMs === undefined ? undefined : answer.retryUs / 1000,
        ]
        const place: string = `${title}: move ${index + 1}, call ${call} of ${times}, at ${move.at} ms`
        assert.deepStrictEqual(seen, [expected, remaining, retryAfterMs], place)
      }
    }
  }
}
