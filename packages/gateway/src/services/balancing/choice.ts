/** An address that a call may go to, as the balancers see it. */
export interface Choice {
  /** The part of the calls it should get, relative to the others, at this moment; more than 0. */
  share: number
  /** Calls that it has now, with those that wait for a connection. */
  readonly underWay: number
  /** A number that depends on nothing but its address. */
  readonly hash: number
  /** How far it is ahead in the round; only the round robin changes it. */
  credit: number
}

/** Chooses one of several addresses; there is at least one. */
export type Balancer = <One extends Choice>(choices: readonly One[]) => One
