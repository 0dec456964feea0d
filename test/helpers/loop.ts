/** A loop of the background, which is tested with a member that throws. */
export interface Loop {
  /** The name under which its errors are counted. */
  readonly place: string
  /** Distinguishes rows of one place. */
  readonly name?: string
  /** How long it takes until each member has been visited twice. */
  readonly ms: number
  /** Adds a good member, a bad one that throws, and another good one; returns how often the good ones have been visited. */
  start(): readonly (() => number)[] | Promise<readonly (() => number)[]>
}

export const counter = (): { count: number; visit: () => void } => {
  const self = { count: 0, visit: () => void self.count++ }
  return self
}

export const fail = (): never => {
  throw new Error('a bad member')
}

/** Runs, and throws at the first call only. */
export function failFirst(): { readonly run: () => void; readonly later: () => number } {
  let calls = 0
  const run = (): void => {
    if (++calls === 1) fail()
  }
  return { run, later: () => calls - 1 }
}
