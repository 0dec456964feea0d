/** Remembers which request is being served; set by the entry `diana-limiter/context`, so that nobody else pays for it. */
export interface RequestTracker {
  enter(identity: object): void
}

export const current: { tracker: RequestTracker | undefined } = { tracker: undefined }
