import type { FastifyInstance } from 'fastify'
import { type AdminOptions, createAdmin } from './create-admin.ts'

export interface AdminAddress {
  /** 127.0.0.1 unless given. */
  readonly host?: string | undefined
  /** 8081 unless given, and then any other if that is taken. */
  readonly port?: number | undefined
}

/** Where the admin API listens, and how it ends. */
export interface RunningAdmin {
  readonly address: string
  close(): Promise<void>
}

const usualPort = 8081

/** Starts the admin API; the token may also come from the environment, as DIANA_ADMIN_TOKEN. */
export async function startAdmin(options: Omit<AdminOptions, 'host'> & AdminAddress): Promise<RunningAdmin> {
  const { host = '127.0.0.1', port, token = process.env.DIANA_ADMIN_TOKEN, ...rest } = options
  const app = await createAdmin({ ...rest, host, token: token === '' ? undefined : token })
  try {
    return { address: await listen(app, host, port), close: () => app.close() }
  } catch (error) {
    await app.close()
    throw error
  }
}

/** A second gateway on one machine must not fail for a port that nobody chose. */
async function listen(app: FastifyInstance, host: string, port: number | undefined): Promise<string> {
  try {
    return await app.listen({ host, port: port ?? usualPort })
  } catch (error) {
    if (port !== undefined || (error as NodeJS.ErrnoException).code !== 'EADDRINUSE') throw error
    return await app.listen({ host, port: 0 })
  }
}
