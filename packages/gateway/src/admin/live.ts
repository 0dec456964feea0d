import { isDeepStrictEqual } from 'node:util'
import type { Limiter } from 'diana-limiter'
import { OverloadHistory, type Stats, StatsHistory } from 'diana-limiter/admin'
import { attempt, visitAll } from 'diana-limiter/gateway'
import type { ProcessState } from './merge-states.ts'
import type { Processes } from './processes.ts'
import { ProcessHistory } from './services/process-history.ts'
import type { ProcessReport } from './services/process-report.ts'
import { ServiceHistory } from './services/service-history.ts'

/** The news that is sent to everyone who watches. */
export interface News {
  readonly event: 'figures' | 'status' | 'rules'
  readonly data: unknown
}

const loadMs = 60_000

type StatusOf = (
  stats: Stats | undefined,
  states: readonly ProcessState[],
  reports: readonly ProcessReport[],
) => unknown

type Listener = (news: News) => void

/** Looks at the figures once a second, remembers them, and sends them to everyone who watches. */
export class Live {
  readonly history: StatsHistory = new StatsHistory()
  readonly overloadHistory: OverloadHistory = new OverloadHistory()
  readonly services: ServiceHistory = new ServiceHistory()
  readonly processHistory: ProcessHistory = new ProcessHistory()
  readonly #processes: Processes
  readonly #statusOf: StatusOf
  readonly #listeners = new Set<Listener>()
  readonly #ending: () => void
  readonly #loads = new Map<string, { readonly load: number; readonly at: number }>()
  #timer: NodeJS.Timeout | undefined
  #stats: Stats | undefined
  #states: readonly ProcessState[] = []
  #reports: readonly ProcessReport[] = []
  #status: unknown
  #closed = false

  constructor(processes: Processes, limiter: Limiter, statusOf: StatusOf) {
    this.#processes = processes
    this.#statusOf = statusOf
    const tellRules = () => this.#tell({ event: 'rules', data: {} })
    const tellStatus = () => this.#tellStatus()
    limiter.events.on('rules', tellRules)
    for (const event of ['store', 'rejected', 'failure', 'rules'] as const) limiter.events.on(event, tellStatus)
    this.#ending = () => {
      limiter.events.off('rules', tellRules)
      for (const event of ['store', 'rejected', 'failure', 'rules'] as const) limiter.events.off(event, tellStatus)
    }
    void this.#look()
  }

  /** Sends a listener the status now and everything from now on; returns what ends it. */
  follow(listener: Listener): () => void {
    listener({ event: 'status', data: this.status() })
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  /** Returns the status with the newest figures of all processes. */
  status(): unknown {
    return this.#statusOf(this.#stats, this.#states, this.#reports)
  }

  /** True if calls are forwarded to services; undefined as long as no process has reported. */
  get hasServices(): boolean | undefined {
    if (this.#reports.length === 0) return undefined
    return this.#reports.some(({ services }) => services !== undefined)
  }

  /** The newest figures of all processes; undefined as long as none were read. */
  get stats(): Stats | undefined {
    return this.#stats
  }

  /** Returns how full the fullest key of each rule was when the rule had its last call; of rules with a call in the last minute. */
  loads(): Record<string, number> {
    return Object.fromEntries([...this.#loads].map(([rule, { load }]) => [rule, load]))
  }

  /** Reports that the rules are not those that were read before. */
  reportRules(): void {
    this.#tell({ event: 'rules', data: {} })
  }

  close(): void {
    this.#closed = true
    clearTimeout(this.#timer)
    this.#ending()
    this.#listeners.clear()
  }

  async #look(): Promise<void> {
    const second = Math.floor(Date.now() / 1000) * 1000 - 1000
    try {
      const [figures, reports] = await Promise.all([this.#processes.figures(), this.#readReports()])
      const loads = await this.#processes.takeLoads()
      attempt('live figures', () => this.#record(second, figures, reports, loads))
    } catch {
      // a process that ends while it is asked is reported by the process that runs it; the next second asks again
    }
    if (this.#closed) return
    // a little after the second has ended, so that it is whole
    this.#timer = setTimeout(() => void this.#look(), 1000 - (Date.now() % 1000) + 5).unref()
  }

  #record(
    second: number,
    figures: Stats,
    reports: readonly ProcessReport[],
    loads: Awaited<ReturnType<Processes['takeLoads']>>,
  ): void {
    this.#stats = figures
    this.#states = this.#processes.states()
    this.#reports = reports
    this.services.record(second / 1000, reports)
    this.processHistory.record(second / 1000, reports)
    const { at, total, rules, store } = this.history.record(figures, loads, second)
    for (const [rule, load] of loads) this.#loads.set(rule, { load, at: second })
    for (const [rule, { at: seen }] of this.#loads) if (second - seen >= loadMs) this.#loads.delete(rule)
    const overloadSecond = this.overloadHistory.record(figures, second)
    const counted = new Map(rules.map(({ id, ...counts }) => [id, counts]))
    const told = new Map<string, object>()
    for (const { id, waiting, leased = 0 } of figures.rules) {
      const counts = counted.get(id)
      if (!counts && waiting + leased === 0) continue
      told.set(id, { ...(counts ?? nothing), waiting, ...(leased > 0 ? { leased } : {}) })
    }
    const waiting = figures.rules.reduce((sum, rule) => sum + rule.waiting, 0)
    this.#tell({
      event: 'figures',
      data: {
        ...{ at, total: { ...total, waiting }, rules: Object.fromEntries(told), store, ...overloadSecond },
        ...costsOf(figures),
      },
    })
    this.#tellStatus()
  }

  /** Reads the reports of all processes; one that cannot be measured must not keep the figures from being read. */
  async #readReports(): Promise<readonly ProcessReport[]> {
    try {
      return await this.#processes.reports()
    } catch {
      return []
    }
  }

  #tellStatus(): void {
    const status = this.status()
    if (isDeepStrictEqual(withoutTime(status), withoutTime(this.#status))) return
    this.#status = status
    this.#tell({ event: 'status', data: status })
  }

  #tell(news: News): void {
    visitAll(
      'readers of the live figures',
      this.#listeners,
      listener => listener(news),
      listener => this.#listeners.delete(listener),
    )
  }
}

const nothing = { allowed: 0, refused: 0, waited: 0, shadowRefused: 0 }

/** Removes what changes by itself, which is no news. */
function withoutTime(status: unknown): unknown {
  if (typeof status !== 'object' || status === null) return status
  const { uptimeMs: _, keys: __, workers: ___, store, overload, ...rest } = status as Record<string, unknown>
  const { asked, decidedHere, leases, ...health } = (store ?? {}) as Record<string, unknown>
  return { ...rest, health, isGuarded: overload !== undefined }
}

/** Returns what rules have reserved and settled since the start; nothing if none does. */
function costsOf({ rules }: Stats): { readonly costs?: Readonly<Record<string, object>> } {
  const costs = rules.flatMap(({ id, amounts, settled }) => (amounts || settled ? [[id, { amounts, settled }]] : []))
  return costs.length === 0 ? {} : { costs: Object.fromEntries(costs) }
}
