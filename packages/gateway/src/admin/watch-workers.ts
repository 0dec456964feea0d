import type { Limiter } from 'diana-limiter'
import { adminOf, type Estimate, mergeCallers, mergeEstimates, mergeStats } from 'diana-limiter/admin'
import { mergeReports, type RouteReport } from '../upstreams/reports.ts'
import type { ProcessState } from './merge-states.ts'
import type { Processes } from './processes.ts'
import type { ProcessReport } from './services/process-report.ts'
import type { AdminAnswers, AdminQuestion } from './worker-answers.ts'

/** Who can ask all workers, and gets the answers of those that give one in time. */
export interface WorkerAsking {
  readonly workers: number
  /** Reads the rules here, and judges no calls. */
  readonly limiter: Limiter
  ask(about: string, details: unknown): Promise<unknown[]>
}

/** The workers of a supervisor, seen as one. */
export function watchWorkers(supervisor: WorkerAsking): Processes {
  const ask = async <Want extends AdminQuestion['want']>(
    want: Want,
    more: Omit<AdminQuestion, 'want' | 'trials'> = {},
  ): Promise<AdminAnswers[Want][]> => {
    const trials = adminOf(supervisor.limiter).trials.map(({ id, rule, text }) => ({ id, rule, text }))
    return (await supervisor.ask('admin', { want, trials, ...more })) as AdminAnswers[Want][]
  }
  let loads: ReadonlyMap<string, number> = new Map()
  let states: readonly ProcessState[] = []
  return {
    get count() {
      return supervisor.workers
    },
    async figures() {
      const answers = await ask('figures')
      states = answers.map(({ state }) => state)
      loads = fullest(answers.flatMap(answer => answer.loads))
      return mergeStats(answers.map(answer => answer.figures))
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
