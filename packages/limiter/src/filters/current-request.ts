/** Remembers which request is being served; set by the entry `diana-limiter/context`, so that applications without it do not pay for it. */
export interface RequestTracker {
  enter(identity: object): void
}

export const current: { tracker: RequestTracker | undefined } = { tracker: undefined }
