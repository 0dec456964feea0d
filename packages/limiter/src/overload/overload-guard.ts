import type { Call } from '../call.ts'
import { levelName, namedLevels } from '../rules/priority/levels.ts'
import type { Priorities } from '../rules/priority/priorities.ts'
import type { OverloadSettings } from '../rules/rule.ts'
import { type Load, LoadSignal, loadOf } from './load-signal.ts'
import { Shedder } from './shedder.ts'
import { Usage } from './usage.ts'

/** The guard's report of itself. */
export interface OverloadStatus extends Load {
  /** The part of the calls that is admitted. */
  readonly share: number
  /** The calls that were refused since the start, by level. */
  readonly shed: Readonly<Record<string, number>>
}

export interface OverloadGuardOptions {
  readonly settings: OverloadSettings
  readonly priorities: Priorities
  /** Reads the caller of a call, for `heaviestFirst`. */
  readonly callerOf?: ((call: Call) => string) | undefined
  readonly random?: (() => number) | undefined
  readonly signal?: Pick<LoadSignal, 'note' | 'read' | 'close'> | undefined
}

const INTERVAL_US = 100_000
const DECAY = 0.95

/** Refuses calls before this process has more to do than it can: the lowest level first, at random or the heaviest callers first. */
export class OverloadGuard {
  readonly #options: OverloadGuardOptions
  readonly #random: () => number
  readonly #signal: Pick<LoadSignal, 'note' | 'read' | 'close'>
  readonly #shedder: Shedder
  readonly #shed: Float64Array
  readonly #usage = new Usage()
  #cut = Number.POSITIVE_INFINITY
  #cutFor = -1
  #load: Load = { delayMs: 0, utilization: 0, waitMs: 0 }
  #updateAt = 0

  constructor(options: OverloadGuardOptions) {
    this.#options = options
    this.#random = options.random ?? Math.random
    this.#signal = options.signal ?? new LoadSignal()
    const { levels } = options.priorities
    this.#shedder = new Shedder(levels.length)
    this.#shed = new Float64Array(levels.length)
  }

  /** True if a call is to be refused now; the answer also counts it. */
  refuses(call: Call, nowUs: number): boolean {
    this.#signal.note(nowUs)
    // a timer would be late while the loop is blocked
    if (nowUs >= this.#updateAt) this.update(nowUs)
    const { priorities, callerOf } = this.#options
    const index = indexOf(priorities, call)
    const chance = this.#shedder.offer(index)
    const used = callerOf ? this.#usage.add(callerOf(call)) : 0
    if (chance === 1) return false
    const refused = index === this.#cutFor && this.#cut > 0 ? used - 1 >= this.#cut : this.#random() >= chance
    if (refused) this.#shed[index] = this.#shed[index]! + 1
    return refused
  }

  /** Reads the load of the last interval. */
  update(nowUs: number): void {
    this.#updateAt = nowUs + INTERVAL_US
    this.#load = this.#signal.read()
    this.#shedder.update(loadOf(this.#load, this.#options.settings))
    if (!this.#options.callerOf) return
    this.#usage.decay(DECAY)
    this.#chooseHeaviest()
  }

  get status(): OverloadStatus {
    const { levels } = this.#options.priorities
    const shed = Object.fromEntries(levels.map((level, i) => [levelName(level), this.#shed[i]!]))
    return { ...this.#load, share: this.#shedder.share, shed }
  }

  close(): void {
    this.#signal.close()
  }

  /** Chooses the heaviest callers inside the level at the threshold: as many are refused as have used what must go. */
  #chooseHeaviest(): void {
    const { levels } = this.#options.priorities
    this.#cutFor = levels.findIndex((_, i) => this.#shedder.chanceAt(i) > 0 && this.#shedder.chanceAt(i) < 1)
    if (this.#cutFor < 0) return
    let used = 0
    for (let i = 0; i < levels.length; i++) used += this.#shedder.offeredAt(i)
    const part =
      used === 0 ? 0 : ((1 - this.#shedder.chanceAt(this.#cutFor)) * this.#shedder.offeredAt(this.#cutFor)) / used
    this.#cut = this.#usage.cut(part * this.#usage.total)
  }
}

function indexOf({ levels, levelOf }: Priorities, call: Call): number {
  if (levels.length === 1) return 0
  const level = levelOf(call)
  for (let i = levels.length - 1; i > 0; i--) if (levels[i]! <= level) return i
  return 0
}

/** Without `priority`, all calls have one level. */
export const onePriority: Priorities = {
  levels: [namedLevels.default!],
  levelOf: () => namedLevels.default!,
  rankOf: () => 0,
}
