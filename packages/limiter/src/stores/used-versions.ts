import { KEPT_US } from './memory/rule-versions.ts'
import type { FleetCounter } from './store.ts'

/** A version of a rule. */
interface Version extends FleetCounter {
  /** The name of the rule in keys. */
  readonly tag: string
  /** Identifies the limit among those with the same tag. */
  readonly mark: number | string
  readonly since: number
  readonly countsSince: number
}

/** A version of a rule that this process has used before. */
interface UsedVersion {
  readonly mark: number | string
  readonly countsSince: number
  readonly longestUs: number
  /** Until when it is kept in the ledgers of callers. */
  readonly until: number
}

const MOST_RULES = 10_000

/** The versions of rules that this process has used: one that comes back soon has counted all calls meanwhile. */
export class UsedVersions {
  readonly #byTag = new Map<string, readonly UsedVersion[]>()

  /** Returns since when the counter that is used from now on counts all calls. */
  use(before: Version, counter: Version, forgetsLimits: boolean): number {
    const { tag, mark, since } = counter
    const known = (this.#byTag.get(tag) ?? []).filter(({ until }) => until > since)
    const found = forgetsLimits ? undefined : known.find(version => version.mark === mark)
    const others = [...known.map(({ longestUs }) => longestUs), longestOf(counter)]
    const longestUs = longestOf(before)
    const staysUs = others.some(other => other >= longestUs) ? KEPT_US : Math.max(KEPT_US, longestUs)
    const left = { mark: before.mark, countsSince: before.countsSince, longestUs, until: since + staysUs }
    this.#byTag.set(tag, [...known.filter(version => version !== found && version.mark !== before.mark), left])
    if (this.#byTag.size > MOST_RULES) this.#byTag.delete(this.#byTag.keys().next().value!)
    return found?.countsSince ?? since
  }
}

function longestOf({ meters }: FleetCounter): number {
  return Math.max(0, ...meters.map(({ migrate }) => migrate?.scale[0] ?? 0))
}
