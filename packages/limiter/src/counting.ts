import type { Algorithm } from './algorithms/algorithm.ts'
import { blocking } from './algorithms/block.ts'
import { algorithms as own } from './algorithms/index.ts'
import { inMicroseconds, steadyClock } from './common/clock.ts'
import { CountingServer } from './stores/counting/server.ts'

export interface CountingOptions {
  /** The address where processes that ask connect: the path of a socket in a folder that only they may enter. */
  readonly socket: string
  /** The ways of counting that their rules may name. */
  readonly algorithms?: readonly Algorithm[] | undefined
  readonly maxKeys?: number | undefined
}

/** A counting process at work. */
export interface Counting {
  close(): Promise<void>
}

/** Counts for other processes of this machine, those whose limiters were made with `counting: socket`. */
export async function serveCounting({ socket, algorithms = own, maxKeys }: CountingOptions): Promise<Counting> {
  const server = new CountingServer({
    algorithms: [...algorithms, blocking],
    maxKeys,
    now: inMicroseconds(steadyClock),
  })
  await server.listen(socket)
  return server
}
