/** The classes under test. */
export interface LeaseParts {
  readonly LeaseBook: unknown
  readonly LeasingStore: unknown
  readonly DenyCache: unknown
  readonly sharedCharge: unknown
  readonly algorithms: unknown
}

export interface LeaseRun {
  readonly over: number
  readonly used: number
  readonly asked: number
  readonly perSecond: number
  readonly busyMs: number
  readonly calls: number
}

export function simulateLeases(parts: LeaseParts, options: object): Promise<LeaseRun>
