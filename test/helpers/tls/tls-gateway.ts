import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { type RequestOptions, request } from 'node:https'
import type { AddressInfo } from 'node:net'
import { connect } from 'node:tls'
import { createLimiter } from 'diana-limiter'
import { stringify } from 'yaml'
import { createGateway, gatewaySection } from '../../../packages/gateway/src/gateway.ts'
import type { Authority } from './authority.ts'

export interface TlsGateway {
  readonly port: number
  /** All that was logged as an error or a warning. */
  readonly log: readonly string[]
  /** What was reported before it began. */
  readonly warnings: readonly string[]
  /** The common name of the certificate that a caller sees who asks for this name. */
  shown(name?: string): Promise<string>
  /** The status and the text of a call; the code of an error. */
  get(path: string, options?: RequestOptions): Promise<string>
  close(): Promise<void>
}

/** A gateway whose files are in the folder of an authority. */
export async function startTlsGateway(authority: Authority, document: object): Promise<TlsGateway> {
  const { folder } = authority
  const config = authority.path('diana.yaml')
  writeFileSync(config, stringify({ rules: [{ id: 'all', limit: '1000/s' }], ...document }))
  const limiter = await createLimiter({ config, sections: [gatewaySection] })
  const log: string[] = []
  const warnings: string[] = []
  const logger = { level: 'warn', stream: { write: (line: string) => void log.push(line) } }
  const onWarning = (warning: string): void => void warnings.push(warning)
  const gateway = await createGateway({ limiter, folder, logger, onWarning }).catch(async error => {
    await limiter.close()
    throw error
  })
  await gateway.listen({ port: 0, host: '127.0.0.1' })
  const { port } = gateway.server.address() as AddressInfo
  const shown = async (servername?: string): Promise<string> => {
    const socket = connect({ port, host: '127.0.0.1', rejectUnauthorized: false, ...(servername && { servername }) })
    await once(socket, 'secureConnect')
    const { subject } = socket.getPeerCertificate()
    socket.destroy()
    return String(subject.CN)
  }
  const get = (path: string, options: RequestOptions = {}): Promise<string> =>
    new Promise(resolve => {
      const asked = request({ port, host: '127.0.0.1', path, agent: false, rejectUnauthorized: false, ...options })
      asked.on('error', error => resolve(String((error as NodeJS.ErrnoException).code)))
      asked.on('response', async answer => {
        const pieces = await answer.setEncoding('utf8').toArray()
        resolve(`${answer.statusCode} ${pieces.join('')}`)
      })
      asked.end()
    })
  const close = async (): Promise<void> => {
    await gateway.close()
    await limiter.close()
  }
  return { port, log, warnings, shown, get, close }
}
