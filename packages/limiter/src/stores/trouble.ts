import { TooLate } from './deadline.ts'

/**
 * What is wrong with a store: it is `down`; it `refuses` to write, since it is full, a replica, or cannot save; it is
 * `misconfigured`, which no waiting mends; it has `lost` what it had counted, and is told again; or it failed in some other
 * way, which is a `bug` of somebody.
 */
export type TroubleKind = 'down' | 'refuses' | 'misconfigured' | 'lost' | 'bug'

export interface Trouble {
  readonly kind: TroubleKind
  readonly message: string
  /** The store said nothing: whoever asks again waits again. */
  readonly isSilent: boolean
}

/** The store has lost what it had counted. */
export class CountsLost extends Error {
  constructor() {
    super('Redis has lost its counts: it was flushed, started empty, or has evicted them')
  }
}

/** The first word of what Redis answers says what it is about. */
const KINDS: Readonly<Record<string, TroubleKind>> = {
  LOADING: 'down',
  BUSY: 'down',
  MASTERDOWN: 'down',
  CLUSTERDOWN: 'down',
  TRYAGAIN: 'down',
  OOM: 'refuses',
  READONLY: 'refuses',
  MISCONF: 'refuses',
  NOREPLICAS: 'refuses',
  NOAUTH: 'misconfigured',
  WRONGPASS: 'misconfigured',
  NOPERM: 'misconfigured',
}
const LONGEST = 300

export function troubleOf(error: unknown): Trouble {
  if (error instanceof CountsLost) return { kind: 'lost', message: error.message, isSilent: false }
  const text = error instanceof Error ? error.message : String(error)
  const word = /^(?:ERR )?([A-Z]{3,})\b/.exec(text)?.[1] ?? ''
  // what no server has said is about the way to it
  const kind = KINDS[word] ?? (isReply(error, word) ? 'bug' : 'down')
  return { kind, message: text.slice(0, LONGEST), isSilent: error instanceof TooLate }
}

/** Clients name what a server answered; a reply that makes no sense is told by what reads it. */
function isReply(error: unknown, word: string): boolean {
  const name = error instanceof Error ? error.name : ''
  return word !== '' || ['ReplyError', 'SimpleError', 'ErrorReply', 'TypeError'].includes(name) || isNonsense(error)
}

function isNonsense(error: unknown): boolean {
  return error instanceof Error && error.message.startsWith('the script answered')
}
