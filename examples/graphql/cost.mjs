// What a GraphQL query costs before it runs: one for each field, times the sizes of the lists around it. It is made for hostile
// queries: bounded in tokens, depth and breadth; fragments are counted once each, and those that contain themselves cost the most.
import { Kind, parse } from 'graphql'

/** Arguments that say how long a list may be. */
const sizes = ['first', 'last', 'limit', 'take', 'pageSize']

const defaults = { max: 10_000, maxTokens: 2000, maxDepth: 12, maxListSize: 1000, listSize: 20 }

/**
 * The cost of a request to a GraphQL server, from 1 to `max`; a request that cannot be read, or is too deep, costs `max`. `listSize` is
 * taken for a size that is given and is not a number.
 */
export function costOfQuery({ query, variables, operationName } = {}, options = {}) {
  const bounds = { ...defaults, ...options }
  if (typeof query !== 'string') return bounds.max
  try {
    const { definitions } = parse(query, { maxTokens: bounds.maxTokens, noLocation: true })
    const operations = definitions.filter(({ kind }) => kind === Kind.OPERATION_DEFINITION)
    const asked = operations.filter(({ name }) => operationName == null || name?.value === operationName)
    if (asked.length === 0) return bounds.max
    const fragments = new Map(
      definitions.flatMap(one => (one.kind === Kind.FRAGMENT_DEFINITION ? [[one.name.value, one]] : [])),
    )
    const counter = new Counter(fragments, variables, bounds)
    // of several operations without a name the server refuses all, and the largest is an upper bound
    const costs = asked.map(({ selectionSet }) => counter.costOf(selectionSet, 1))
    return Math.min(bounds.max, Math.max(1, ...costs))
  } catch {
    return bounds.max
  }
}

class Counter {
  #known = new Map()

  constructor(fragments, variables, bounds) {
    this.fragments = fragments
    this.variables = typeof variables === 'object' && variables !== null ? variables : {}
    this.bounds = bounds
  }

  /** The cost of one object with these fields. */
  costOf(selectionSet, depth) {
    if (selectionSet === undefined) return 0
    const { max, maxDepth } = this.bounds
    if (depth > maxDepth) throw new Error('too deep')
    let cost = 0
    // a field that is asked for by several aliases is there several times
    for (const selection of selectionSet.selections) {
      cost += this.#costOfSelection(selection, depth)
      if (cost >= max) return max
    }
    return cost
  }

  #costOfSelection(selection, depth) {
    if (selection.kind === Kind.FRAGMENT_SPREAD) return this.#costOfFragment(selection.name.value, depth)
    if (selection.kind === Kind.INLINE_FRAGMENT) return this.costOf(selection.selectionSet, depth)
    return 1 + this.#sizeOf(selection) * this.costOf(selection.selectionSet, depth + 1)
  }

  /** Counted once, however often it is used: fragments of fragments would otherwise grow without bounds. */
  #costOfFragment(name, depth) {
    const known = this.#known.get(name)
    if (known === 'open') throw new Error('a fragment contains itself')
    if (known !== undefined && known.depth >= depth) return known.cost
    this.#known.set(name, 'open')
    const cost = this.costOf(this.fragments.get(name)?.selectionSet, depth)
    this.#known.set(name, { cost, depth })
    return cost
  }

  #sizeOf({ arguments: given = [] }) {
    const { maxListSize } = this.bounds
    const named = given.filter(({ name }) => sizes.includes(name.value)).map(({ value }) => this.#numberIn(value))
    return named.length === 0 ? 1 : Math.min(maxListSize, Math.max(1, ...named))
  }

  #numberIn(value) {
    const number = value.kind === Kind.VARIABLE ? this.variables[value.name.value] : Number(value.value)
    return Number.isSafeInteger(number) && number >= 0 ? number : this.bounds.listSize
  }
}
