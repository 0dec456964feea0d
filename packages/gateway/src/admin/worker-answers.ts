import type { Call, Limiter } from 'diana-limiter'
import {
  adminOf,
  type CallerSearch,
  type CallerUsage,
  type Estimate,
  type RecordedCall,
  type RefusalSearch,
  type RefusedCall,
  type Stats,
} from 'diana-limiter/admin'

import type { ProcessState } from './merge-states.ts'

/** A rule that a supervisor wants on trial in every worker. */
export interface WantedTrial {
  readonly id: string
  readonly rule: string
  readonly text: string
}

/** A question of a supervisor to a worker; each also says which rules are on trial. */
export interface AdminQuestion {
  readonly want: 'figures' | 'callers' | 'refusals' | 'calls' | 'leases' | 'estimates'
  readonly trials: readonly WantedTrial[]
  readonly search?: CallerSearch | RefusalSearch | undefined
  readonly call?: Call | undefined
}

/** The answers, as plain values. */
export interface AdminAnswers {
  readonly figures: {
    readonly figures: Stats
    readonly loads: readonly (readonly [rule: string, load: number])[]
    readonly state: ProcessState
  }
  readonly callers: readonly CallerUsage[]
  readonly refusals: readonly RefusedCall[]
  readonly calls: readonly RecordedCall[]
  /** The permits of a call's keys that are held in advance, by rule. */
  readonly leases: readonly (readonly [rule: string, permits: number])[]
  /** The findings of adaptive rules for a call's keys. */
  readonly estimates: readonly (readonly [rule: string, estimate: Estimate])[]
}

type Answer = AdminAnswers[keyof AdminAnswers]

/** Answers for one worker's limiter; what it takes to answer is kept from now on. */
export function createWorkerAnswers(limiter: Limiter): (question: AdminQuestion) => Answer | Promise<Answer> {
  adminOf(limiter).record()
  const traffic = adminOf(limiter).watchTraffic()
  return ({ want, trials, search = { count: 20 }, call }) => {
    // said with every question, so that a worker that was started again learns of them too
    runTrials(limiter, trials)
    if (want === 'callers') return traffic.callers(search)
    if (want === 'refusals') return traffic.refusals(search)
    if (want === 'calls') return adminOf(limiter).recentCalls()
    if (want === 'leases') return call ? [...adminOf(limiter).leasedFor(call)] : []
    if (want === 'estimates') return call ? estimatesFor(limiter, call) : []
    const { store, keys, maxKeys, overflowing } = limiter.status()
    const state = { store, keys, maxKeys, overflowing }
    return { figures: adminOf(limiter).stats(), loads: [...adminOf(limiter).takeLoads()], state }
  }
}

async function estimatesFor(limiter: Limiter, call: Call): Promise<AdminAnswers['estimates']> {
  const rules = await limiter.explain(call)
  return rules.flatMap(({ rule, estimate }) => (estimate ? [[rule, estimate] as const] : []))
}

function runTrials(limiter: Limiter, wanted: readonly WantedTrial[]): void {
  const running = new Map(adminOf(limiter).trials.map(({ id, text }) => [id, text]))
  for (const id of running.keys()) if (!wanted.some(trial => trial.id === id)) adminOf(limiter).endTrial(id)
  for (const { id, rule, text } of wanted) if (running.get(id) !== text) adminOf(limiter).startTrial(rule, text)
}
