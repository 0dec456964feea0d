import type { Balance } from '../../settings/upstreams/upstream-settings.ts'
import type { Balancer } from './choice.ts'
import { leastConnections } from './least-connections.ts'
import { roundRobin } from './round-robin.ts'

/** How addresses are chosen, by the word for it in the rule file. */
export const balancers: Readonly<Record<Balance, Balancer>> = {
  'round-robin': roundRobin,
  'least-connections': leastConnections,
}
