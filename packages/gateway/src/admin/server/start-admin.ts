import type { FastifyInstance, FastifyListenOptions } from 'fastify'
import { type ListeningSocket, socketOf } from '../../http/listening-socket.ts'
import { type AdminOptions, createAdmin } from './create-admin.ts'

export interface AdminAddress {
  /** 127.0.0.1 unless given. */
  readonly host?: string | undefined
  /** 8081 unless given, and then any other if that is taken. */
  readonly port?: number | undefined
  /** A socket that listens already, in place of host and port. */
  readonly fd?: number | undefined
}

/** A running admin API: its address, and how it ends. */
export interface RunningAdmin {
  readonly address: string
  /** Returns the socket on which operators come in, for another process. */
  socket(): ListeningSocket | undefined
  /** Goes on with a new file if the list of changes was renamed. */
  reopenLogs(): void
  close(): Promise<void>
}

const usualPort = 8081

/** Starts the admin API; the tokens may also come from the environment, as DIANA_ADMIN_TOKEN and DIANA_ADMIN_VIEW_TOKEN. */
export async function startAdmin(options: Omit<AdminOptions, 'host'> & AdminAddress): Promise<RunningAdmin> {
  const { host = '127.0.0.1', port, fd, token = process.env.DIANA_ADMIN_TOKEN, ...rest } = options
  const viewToken = (options.viewToken ?? process.env.DIANA_ADMIN_VIEW_TOKEN) || undefined
  const app = await createAdmin({ ...rest, host, viewToken, token: token === '' ? undefined : token })
  try {
    const address = fd === undefined ? await listen(app, host, port) : await app.listen(onDescriptor(host, fd))
    const reopenLogs = (): void => void options.state?.reopen()
    return { address, socket: () => socketOf(app.server), reopenLogs, close: () => app.close() }
  } catch (error) {
    await app.close()
    throw error
  }
}

/** Makes the options that listen on a descriptor: Fastify hands all options on to Node, which knows descriptors. */
function onDescriptor(host: string, fd: number): FastifyListenOptions {
  return { host, fd } as FastifyListenOptions
}

/** Listens on the port; a second gateway on one machine must not fail for a port that no operator chose. */
async function listen(app: FastifyInstance, host: string, port: number | undefined): Promise<string> {
  try {
    return await app.listen({ host, port: port ?? usualPort })
  } catch (error) {
    if (port !== undefined || (error as NodeJS.ErrnoException).code !== 'EADDRINUSE') throw error
    return await app.listen({ host, port: 0 })
  }
}
