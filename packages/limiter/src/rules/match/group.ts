import { getOrAdd } from '../get-or-add.ts'
import type { Answers, Condition, Topic } from './condition.ts'
import type { Search } from './search.ts'

/** A rule and the conditions still to be tested before it matches. */
export interface Candidate {
  readonly position: number
  readonly conditions: readonly Condition[]
}

/** The number of values that may still be sorted into indexes: rules with many paths, hosts and headers must not multiply them. */
export interface Budget {
  values: number
}

// A few rules are tested faster one by one than through an index.
const FEWEST = 8
const DEEPEST = 3
const FEW_HEADERS = 16

/**
 * Rules that match once their conditions do. A large group is split by value: each rule waits under its rarest
 * condition, so a call meets only rules that it shares a rare value with.
 */
export class RuleGroup {
  readonly #certain: number[] = []
  readonly #asked: Candidate[] = []
  readonly #indexes: Index[] = []
  readonly #byHeader: Map<string, Index> | undefined
  #round = 0

  constructor(candidates: readonly Candidate[], budget: Budget, depth: number = DEEPEST) {
    const asking: Candidate[] = []
    for (const candidate of candidates) {
      if (candidate.conditions.length === 0) this.#certain.push(candidate.position)
      else asking.push(candidate)
    }
    const placed = asking.length > FEWEST && depth > 0 ? placeByRarest(asking, budget) : undefined
    if (placed === undefined) this.#asked = asking
    else for (const { topic, waiting } of placed) this.#indexes.push(new Index(topic, waiting, budget, depth - 1))
    if (this.#indexes.length > FEW_HEADERS) this.#byHeader = takeHeaders(this.#indexes)
  }

  collect(search: Search): void {
    if (this.#round === search.round) return
    this.#round = search.round
    for (const position of this.#certain) search.add(position)
    for (const candidate of this.#asked) if (holds(candidate, search)) search.add(candidate.position)
    for (const index of this.#indexes) index.topic.ask(search, index)
    if (this.#byHeader === undefined) return
    for (const name in search.headers) {
      const index = this.#byHeader.get(name)
      if (index !== undefined) index.topic.ask(search, index)
    }
  }
}

class Index implements Answers {
  readonly topic: Topic
  readonly #groups = new Map<string, RuleGroup>()

  constructor(topic: Topic, waiting: ReadonlyMap<string, readonly Candidate[]>, budget: Budget, depth: number) {
    this.topic = topic
    for (const [value, candidates] of waiting) this.#groups.set(value, new RuleGroup(candidates, budget, depth))
  }

  meet(value: string, search: Search): boolean {
    this.#groups.get(value)?.collect(search)
    return false
  }
}

/** Takes the indexes of headers. If the rules have many header names, the call's own headers are looked up instead. */
function takeHeaders(indexes: Index[]): Map<string, Index> {
  const byHeader = new Map<string, Index>()
  for (const index of indexes.splice(0)) {
    if (index.topic.header === undefined) indexes.push(index)
    else byHeader.set(index.topic.header, index)
  }
  return byHeader
}

interface Placed {
  readonly topic: Topic
  readonly waiting: Map<string, Candidate[]>
}

function placeByRarest(candidates: readonly Candidate[], budget: Budget): Iterable<Placed> | undefined {
  const work = candidates.reduce((sum, { conditions }) => sum + countOf(conditions), 0)
  if (work > budget.values) return undefined
  budget.values -= work
  const frequency = countValues(candidates)
  const placed = new Map<string, Placed>()
  for (const candidate of candidates) {
    const rarest = rarestCondition(candidate, frequency)
    const { topic, values } = rarest
    const { waiting } = getOrAdd(placed, topic.name, () => ({ topic, waiting: new Map() }))
    const left = { position: candidate.position, conditions: candidate.conditions.filter(one => one !== rarest) }
    for (const value of values) getOrAdd(waiting, value, () => []).push(left)
  }
  return placed.values()
}

function countOf(conditions: readonly Condition[]): number {
  return conditions.reduce((sum, { values }) => sum + values.size, 0)
}

type Frequency = ReadonlyMap<string, ReadonlyMap<string, number>>

function countValues(candidates: readonly Candidate[]): Frequency {
  const frequency = new Map<string, Map<string, number>>()
  for (const { conditions } of candidates) {
    for (const { topic, values } of conditions) {
      const counts = getOrAdd(frequency, topic.name, () => new Map<string, number>())
      for (const value of values) counts.set(value, (counts.get(value) ?? 0) + 1)
    }
  }
  return frequency
}

function rarestCondition(candidate: Candidate, frequency: Frequency): Condition {
  let rarest = candidate.conditions[0]!
  let fewestRivals = Number.POSITIVE_INFINITY
  for (const condition of candidate.conditions) {
    const counts = frequency.get(condition.topic.name)!
    let rivals = 0
    for (const value of condition.values) rivals = Math.max(rivals, counts.get(value)!)
    if (rivals < fewestRivals) {
      rarest = condition
      fewestRivals = rivals
    }
  }
  return rarest
}

function holds(candidate: Candidate, search: Search): boolean {
  for (const { topic, answers } of candidate.conditions) if (!topic.ask(search, answers)) return false
  return true
}
