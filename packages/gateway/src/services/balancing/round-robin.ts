import type { Choice } from './choice.ts'

/**
 * Smooth weighted round robin, as in nginx. Each address earns credit by its share, and the one with the most is chosen and pays
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
