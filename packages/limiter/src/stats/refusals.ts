/** One refused call, with the numbers of that moment, as plain values. */
export interface RefusedCall {
  /** Milliseconds since 1970. */
  readonly at: number
  /** The rule that refused; empty if none did, but the process or a list of callers. */
  readonly rule: string
  readonly by: readonly string[]
  readonly key: string
  readonly reason: string
  readonly method: string
  readonly path: string
  readonly ip?: string | undefined
  readonly limit?: number | undefined
  readonly periodMs?: number | undefined
  readonly remaining?: number | undefined
  /** The time after which the same call would have passed; null if no moment is known. */
  readonly retryAfterMs: number | null
  /** Refusals of this rule since the last one that was kept. */
  readonly unsaid: number
}

interface RuleRefusals {
  readonly kept: RefusedCall[]
  second: number
  thisSecond: number
  unsaid: number
}

const mostOfRule = 100
const perSecondOfRule = 5
const perSecond = 50

/** The last refusals of each rule: a sample, in bounded memory, so that a flood of one rule hides no other. */
export class Refusals {
  readonly #most: number
  readonly #rules = new Map<string, RuleRefusals>()
  #second = 0
  #thisSecond = 0
  #size = 0

  constructor(most = 2000) {
    this.#most = most
  }

  /** Counts a refusal; whether it is one of those that are kept. */
  takes(rule: string, at: number): boolean {
    const second = Math.floor(at / 1000)
    if (second !== this.#second) [this.#second, this.#thisSecond] = [second, 0]
    const own = this.#ofRule(rule)
    if (second !== own.second) [own.second, own.thisSecond] = [second, 0]
    if (own.thisSecond >= perSecondOfRule || this.#thisSecond >= perSecond) {
      own.unsaid++
      return false
    }
    own.thisSecond++
    this.#thisSecond++
    return true
  }

  /** Keeps a refusal that was counted. */
  keep(rule: string, at: number, refusal: Omit<RefusedCall, 'at' | 'rule' | 'unsaid'>): void {
    const own = this.#ofRule(rule)
    own.kept.push({ at, rule, ...refusal, unsaid: own.unsaid })
    own.unsaid = 0
    this.#size++
    if (own.kept.length > mostOfRule) this.#dropOldest(own)
    else if (this.#size > this.#most) this.#dropOldest(this.#longest())
  }

  /** Returns the newest refusals first. */
  read(count: number, wants: (refusal: RefusedCall) => boolean = () => true): RefusedCall[] {
    const all = [...this.#rules.values()].flatMap(({ kept }) => kept.filter(wants))
    return all.sort((one, other) => other.at - one.at).slice(0, count)
  }

  retain(rules: ReadonlySet<string>): void {
    for (const [id, { kept }] of this.#rules) {
      if (id === '' || rules.has(id)) continue
      this.#size -= kept.length
      this.#rules.delete(id)
    }
  }

  #ofRule(rule: string): RuleRefusals {
    let own = this.#rules.get(rule)
    if (own === undefined) {
      own = { kept: [], second: 0, thisSecond: 0, unsaid: 0 }
      this.#rules.set(rule, own)
    }
    return own
  }

  #dropOldest({ kept }: RuleRefusals): void {
    kept.shift()
    this.#size--
  }

  #longest(): RuleRefusals {
    let longest: RuleRefusals | undefined
    for (const one of this.#rules.values()) if (one.kept.length > (longest?.kept.length ?? 0)) longest = one
    return longest!
  }
}
