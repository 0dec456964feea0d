import type { Balance } from '../../settings/upstreams/upstream-settings.ts'

/** An address that a call may go to, as the balancers see it. */
export interface Choice {
  /** The part of the calls it should get, relative to the others, at this moment; more than 0. */
  share: number
  /** Calls that it has now, with those that wait for a connection. */
  readonly underWay: number
  /** A number that depends on nothing but its address. */
  readonly hash: number
  /** The lead of the address in the round; only the round robin changes it. */
  credit: number
}

/** Chooses one of several addresses; there is at least one. */
export type Balancer = <One extends Choice>(choices: readonly One[]) => One

/**
 * Chooses by smooth weighted round robin, as in nginx. Each address earns credit by its share, and the one with the most is chosen and pays
 * for all:
 *
 *     shares 5, 1, 1:   a a b a c a a
 *
 * After as many calls as the shares add up to, each address has had exactly its share, and the calls of one address are spread
 * over the round.
 */
export function roundRobin<One extends Choice>(choices: readonly One[]): One {
  let total = 0
  let best = choices[0]!
  for (const choice of choices) {
    choice.credit += choice.share
    total += choice.share
    if (choice.credit > best.credit) best = choice
  }
  best.credit -= total
  return best
}

/** Returns the address with the fewest calls under way for its share; of several alike, the next one of the round. */
export function leastConnections<One extends Choice>(choices: readonly One[]): One {
  let least = Number.POSITIVE_INFINITY
  for (const { underWay, share } of choices) least = Math.min(least, underWay / share)
  return roundRobin(choices.filter(({ underWay, share }) => underWay / share === least))
}

/** The ways to choose addresses, by the word for each in the rule file. */
export const balancers: Readonly<Record<Balance, Balancer>> = {
  'round-robin': roundRobin,
  'least-connections': leastConnections,
}
