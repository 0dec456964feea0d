import { RedisStore } from '../stores/redis/redis-store.ts'
import type { SendCommand } from '../stores/redis/send-command.ts'
import type { SharedStore } from '../stores/store.ts'

/** A store that continues changed limits by itself, and can say when. */
export interface WalkedStore extends SharedStore {
  settle: NonNullable<SharedStore['settle']>
  continued(): Promise<void>
}

/** Creates the store of a walk, on the clock of the walk. */
export type CreateWalkedStore = (options: {
  readonly prefix: string
  readonly now: () => number
  readonly forgetsLimits: boolean
}) => WalkedStore

/** Returns what creates the stores of walks on Redis. */
export function walkedInRedis(send: SendCommand): CreateWalkedStore {
  return options => new RedisStore(send, options)
}
