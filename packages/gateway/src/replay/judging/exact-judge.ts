import { setImmediate as nextTurn } from 'node:timers/promises'
import type { Call, Verdict } from 'diana-limiter'
import type { CompiledRule, ReplayLimiter } from 'diana-limiter/gateway'
import { createRuleFigures, type RuleFigures, TotalFigures } from '../figures/figures.ts'
import type { Judge, JudgeOptions, LoggedCall } from './judge.ts'
import type { VirtualTime } from './virtual-time.ts'

export interface ExactJudgeOptions extends JudgeOptions {
  /** Called with what became of each call. */
  readonly onVerdict?: ((logged: LoggedCall, verdict: Verdict | undefined) => void) | undefined
}

/**
 * Judges calls whose moments are known to the microsecond as the gateway does: by a limiter, whose clock and timers move with the
 * moments of the log. Calls never run backwards.
 */
export class ExactJudge implements Judge {
  readonly total: TotalFigures = new TotalFigures()
  readonly rules: readonly RuleFigures[]
  readonly #replay: ReplayLimiter
  readonly #time: VirtualTime
  readonly #options: ExactJudgeOptions
  readonly #indexOf: ReadonlyMap<CompiledRule, number>
  readonly #byId: ReadonlyMap<string, RuleFigures>
  readonly #found: CompiledRule[] = []
  readonly #hasShadows: boolean
  #waiting = 0

  constructor(replay: ReplayLimiter, time: VirtualTime, options: ExactJudgeOptions) {
    this.#replay = replay
    this.#time = time
    this.#options = options
    this.#indexOf = new Map(replay.rules.map((rule, index) => [rule, index]))
    this.rules = replay.rules.map(rule => createRuleFigures(rule, 0, options.maxKeys, () => {}))
    this.#byId = new Map(this.rules.map(figures => [figures.rule.id, figures]))
    this.#hasShadows = replay.rules.some(rule => !rule.enforced)
  }

  add(call: Call, logged: LoggedCall): void | Promise<void> {
    if (this.#waiting > 0) return this.#addLater(call, logged)
    while (this.#time.step(logged.at, logged.turn));
    const verdict = this.#decide(call, logged)
    return verdict instanceof Promise ? nextTurn() : undefined
  }

  async finish(): Promise<void> {
    while (this.#waiting > 0 && this.#time.step(Number.POSITIVE_INFINITY, 0)) await nextTurn()
    for (const { callers } of this.rules) callers.finish()
    this.total.most = this.total.least
  }

  async #addLater(call: Call, logged: LoggedCall): Promise<void> {
    while (this.#time.step(logged.at, logged.turn)) if (this.#waiting > 0) await nextTurn()
    if (this.#decide(call, logged) instanceof Promise) await nextTurn()
  }

  #decide(call: Call, logged: LoggedCall): Verdict | Promise<Verdict | undefined> {
    const { at, durationUs, turn } = logged
    this.total.calls++
    this.#count(call, at)
    const leaving = new AbortController()
    const verdict = this.#replay.limiter.decide(call, { signal: () => leaving.signal })
    if (!(verdict instanceof Promise)) {
      this.#take(call, logged, verdict)
      return verdict
    }
    this.#waiting++
    // a caller who left while the call waited
    const leaves = logged.left ? this.#time.at(at + durationUs, () => leaving.abort(), turn) : undefined
    return verdict.then(
      one => {
        if (leaves) leaves.run = undefined
        this.#waiting--
        this.#take(call, logged, one)
        return one
      },
      () => {
        this.#waiting--
        this.#options.onVerdict?.(logged, undefined)
        return undefined
      },
    )
  }

  /** Counts the call for each of its rules. */
  #count(call: Call, at: number): void {
    const size = this.#replay.select(call, this.#found)
    for (let i = 0; i < size; i++) {
      const rule = this.#found[i]!
      const index = this.#indexOf.get(rule)
      if (index === undefined) continue
      const figures = this.rules[index]!
      figures.calls++
      const slot = figures.callers.slotOf(rule.key(call))
      figures.timeline.add(at, 1, 0, 0)
      if (slot === undefined) figures.untracked++
      else {
        figures.callers.came(slot, at, 1)
        if (figures.callers.isFollowed(slot)) figures.callers.refused(slot, at, 1, 0, 0)
        figures.callers.sweep(at - 2 * memoryUs(rule))
      }
    }
  }

  #take(call: Call, logged: LoggedCall, verdict: Verdict): void {
    const { at, durationUs, endTurn, own = false } = logged
    const status = (logged.outcome ?? (logged.left ? 0 : logged.status)) || undefined
    const refused = verdict.allowed ? 0 : 1
    this.total.timeline.add(at, 1, refused, refused)
    this.total.least += refused
    if (refused > 0 || this.#hasShadows) this.#countRefusals(call, logged.at, verdict)
    this.#options.onVerdict?.(logged, verdict)
    if (!verdict.holds) return
    const wait = verdict.waitMs * 1000 - (logged.waitUs ?? 0)
    const endsAt = at + (Number.isNaN(durationUs) ? 0 : durationUs) + wait
    this.#time.at(endsAt, () => verdict.end({ status, by: own ? 'gateway' : 'service' }), endTurn)
  }

  #countRefusals(call: Call, at: number, verdict: Verdict): void {
    const ids = new Set<string>()
    for (const { allowed, rule } of verdict.decisions) if (!allowed) ids.add(rule)
    if (verdict.rule !== undefined) ids.add(verdict.rule)
    if (verdict.reason === 'denied' || verdict.reason === 'ambiguous') this.total.denied++
    for (const id of ids) {
      const figures = this.#byId.get(id)
      if (figures === undefined) continue
      const { callers, rule } = figures
      if (verdict.reason === 'denied' || verdict.reason === 'ambiguous') {
        figures.calls++
        figures.denied++
        continue
      }
      figures.timeline.add(at, 0, 1, 1)
      const slot = callers.slotOf(rule.key(call))
      if (slot === undefined) continue
      callers.least[slot] = callers.least[slot]! + 1
      callers.most[slot] = callers.most[slot]! + 1
      callers.refused(slot, at, 1, 1, 1)
    }
  }
}

/** Returns how long a caller is kept after their last call. */
function memoryUs({ limits, blockMs, blockGrowth }: CompiledRule): number {
  const blockedMs = blockGrowth ? blockGrowth.maxMs + blockGrowth.forgetAfterMs : (blockMs ?? 0)
  return (Math.max(...limits.map(({ periodMs }) => periodMs)) + blockedMs) * 1000
}
