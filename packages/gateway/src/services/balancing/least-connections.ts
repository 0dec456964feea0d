import type { Choice } from './choice.ts'
import { roundRobin } from './round-robin.ts'

/** The address with the fewest calls under way for its share; of several alike, the next one of the round. */
export function leastConnections<One extends Choice>(choices: readonly One[]): One {
  let least = Number.POSITIVE_INFINITY
  for (const { underWay, share } of choices) least = Math.min(least, underWay / share)
  return roundRobin(choices.filter(({ underWay, share }) => underWay / share === least))
}
