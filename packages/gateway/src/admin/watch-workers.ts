import type { Limiter } from 'diana-limiter'
import { adminOf, type Estimate, mergeCallers, mergeEstimates, mergeStats, type Stats } from 'diana-limiter/admin'
import { mergeReports, type RouteReport } from '../services/reports.ts'
import { LastingStats } from './lasting-stats.ts'
import type { ProcessState } from './merge-states.ts'
import type { Processes } from './processes.ts'
import type { ProcessReport } from './services/process-report.ts'
import type { AdminAnswers, AdminQuestion } from './worker-answers.ts'

/** A supervisor that can ask all workers, and gets the answers of those that give one in time. */
export interface WorkerAsking {
  readonly workers: number
  /** Reads the rules here, and judges no calls. */
  readonly limiter: Limiter
  ask(about: string, details: unknown): Promise<unknown[]>
  /** Asks all workers, and returns each answer with the process that gave it. */
  askEach(about: string, details: unknown): Promise<{ readonly pid: number; readonly answer: unknown }[]>
  /** The processes that run at this moment. */
  readonly pids: readonly number[]
}

/** Returns the workers of a supervisor, seen as one. */
export function watchWorkers(supervisor: WorkerAsking): Processes {
  const trials = () => adminOf(supervisor.limiter).trials.map(({ id, rule, text }) => ({ id, rule, text }))
  const ask = async <Want extends AdminQuestion['want']>(
    want: Want,
    more: Omit<AdminQuestion, 'want' | 'trials'> = {},
  ): Promise<AdminAnswers[Want][]> => {
    return (await supervisor.ask('admin', { want, trials: trials(), ...more })) as AdminAnswers[Want][]
  }
  const lasting = new LastingStats({ merge: mergeStats, countersOf, progressOf: callsOf, retain: retainRules })
  let loads: ReadonlyMap<string, number> = new Map()
  let states: readonly ProcessState[] = []
  return {
    get count() {
      return supervisor.workers
    },
    async figures() {
      const found = await supervisor.askEach('admin', { want: 'figures', trials: trials() })
      const each = found.map(({ pid, answer }) => ({ pid, answer: answer as AdminAnswers['figures'] }))
      const answers = each.map(({ answer }) => answer)
      states = answers.map(({ state }) => state)
      loads = fullest(answers.flatMap(answer => answer.loads))
      const stats = each.map(({ pid, answer }) => ({ pid, stats: answer.figures }))
      return lasting.update(stats, supervisor.pids)
    },
    states: () => states,
    takeLoads: () => loads,
    callers: async search => mergeCallers(await ask('callers', { search }), search),
    async refusals(search) {
      const all = (await ask('refusals', { search })).flat()
      return all.sort((one, other) => other.at - one.at).slice(0, search.count)
    },
    async recentCalls() {
      const calls = (await ask('calls')).flat()
      return calls.sort((one, other) => one.at - other.at)
    },
    async estimatesFor(call) {
      const found = new Map<string, Estimate[]>()
      for (const [rule, estimate] of (await ask('estimates', { call })).flat()) {
        found.set(rule, [...(found.get(rule) ?? []), estimate])
      }
      return new Map([...found].map(([rule, estimates]) => [rule, mergeEstimates(estimates)!]))
    },
    reports: async () => (await supervisor.ask('process', undefined)) as ProcessReport[],
    leasedFor: async call => added((await ask('leases', { call })).flat()),
    upstreams: async () => mergeReports((await supervisor.ask('upstreams', undefined)) as RouteReport[][]),
    close: () => {},
  }
}

/** Returns what a process had counted; nothing that was true of its last moment only. */
function countersOf({ overload: _, ...stats }: Stats): Stats {
  const { store } = stats
  return {
    ...stats,
    rules: stats.rules.map(({ estimate: _estimate, leased: _leased, ...rule }) => ({ ...rule, waiting: 0 })),
    ...(store && { store: { ...store, leases: { ...store.leases, keys: 0, permits: 0 } } }),
  }
}

function callsOf({ total: { allowed, refused } }: Stats): number {
  return allowed + refused
}

/** Rules that no process has any more are forgotten. */
function retainRules(ended: Stats, running: readonly Stats[]): Stats {
  const known = new Set(running.flatMap(({ rules }) => rules.map(({ id }) => id)))
  return { ...ended, rules: ended.rules.filter(({ id }) => known.has(id)) }
}

function added(leases: readonly (readonly [rule: string, permits: number])[]): Map<string, number> {
  const sums = new Map<string, number>()
  for (const [rule, permits] of leases) sums.set(rule, permits + (sums.get(rule) ?? 0))
  return sums
}

function fullest(loads: readonly (readonly [rule: string, load: number])[]): Map<string, number> {
  const most = new Map<string, number>()
  for (const [rule, load] of loads) most.set(rule, Math.max(load, most.get(rule) ?? 0))
  return most
}
