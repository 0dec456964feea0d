import type { Balancer } from './choice.ts'
import { leastConnections } from './least-connections.ts'
import { roundRobin } from './round-robin.ts'

/** Ways to choose an address, as the rule file names them. */
export type Balance = 'round-robin' | 'least-connections'

/** How addresses are chosen, by the word for it in the rule file. */
export const balancers: Readonly<Record<Balance, Balancer>> = {
  'round-robin': roundRobin,
  'least-connections': leastConnections,
}
