import { setImmediate as nextTurn } from 'node:timers/promises'
import { createReplayLimiter, type ReplayLimiter } from 'diana-limiter/gateway'
import { VirtualTime } from '../../replay/judging/virtual-time.ts'
import type { Case } from '../cases/case-file.ts'
import type { RuleSet } from './rule-set.ts'

/** The processes of a case, on a time that only the case moves. */
export interface Scene {
  readonly processes: readonly ReplayLimiter[]
  /** Microseconds since 1970. */
  readonly nowUs: number
  /** Runs something at a moment. */
  at(atUs: number, run: () => void): void
  /** Lets time pass until a moment; a promise if something of it is decided later. `waits` says whether calls wait. */
  advance(atUs: number, waits: boolean): void | Promise<void>
  /** Lets all calls that wait be decided. */
  finish(waits: () => boolean): Promise<void>
  /** True if every decision is a promise. */
  readonly isAsync: boolean
  close(): Promise<void>
}

/** Processes that count by themselves: their decisions need no promise unless a call waits. */
export async function createLocalScene(
  { document, extensions }: RuleSet,
  { processes, beginUs }: Case,
): Promise<Scene> {
  const time = new VirtualTime()
  time.now = beginUs
  const limiters: ReplayLimiter[] = []
  for (let index = 0; index < processes; index++) {
    limiters.push(await createReplayLimiter(document, { extensions, clock: () => time.now / 1000, timers: time }))
  }
  const pass = async (atUs: number, isOver: () => boolean): Promise<void> => {
    while (!isOver() && time.step(atUs, Number.POSITIVE_INFINITY)) await nextTurn()
  }
  return {
    processes: limiters,
    isAsync: false,
    get nowUs() {
      return time.now
    },
    at: (atUs, run) => void time.at(atUs, run),
    advance(atUs, waits) {
      if (waits) return pass(atUs, () => false)
      while (time.step(atUs, Number.POSITIVE_INFINITY));
    },
    async finish(waits) {
      while (waits()) {
        if (!time.step(Number.POSITIVE_INFINITY, 0)) break
        await nextTurn()
      }
    },
    async close() {
      for (const { limiter } of limiters) await limiter.close()
    },
  }
}
