import { createHash, createHmac, randomBytes } from 'node:crypto'
import { countedPath, hasReadings, readingsOf } from 'diana-limiter/gateway'
import type { FastifyRequest } from 'fastify'
import { pathOf } from '../../http/normalize-request.ts'
import { apiKeyOptions } from '../../settings/routes/filter-options.ts'
import { sendProblem } from '../problem.ts'
import type { Filter } from './filter.ts'
import { onRequest } from './filter.ts'

interface Permission {
  readonly name: string
  readonly sha256: string
  readonly paths: readonly string[]
  readonly methods: readonly string[]
}

interface Options {
  readonly header: string
  readonly keys: readonly Permission[]
}

const nameHeader = 'x-api-key-name'
const longestKey = 1024

/** Lets only those pass who have a key that opens what they call. Keys are kept as digests only. */
export const apiKey: Filter = {
  name: 'api-key',
  options: apiKeyOptions,
  create(options) {
    const { header, keys } = options as unknown as Options
    const headerName = header.toLowerCase()
    const find = createKeyring(keys)
    return onRequest('api-key', async (request, reply) => {
      const given = request.headers[headerName]
      const found = typeof given === 'string' && given.length <= longestKey ? find(given) : undefined
      if (found === undefined) {
        reply.header('www-authenticate', `ApiKey header="${headerName}"`)
        return sendProblem(reply, 401, `This call needs a key in the header ${headerName}.`)
      }
      if (!opens(found, request)) return sendProblem(reply, 403, 'This key does not open what was called.')
      // the key ends here; the service learns whose it is
      delete request.headers[headerName]
      request.headers[nameHeader] = found.name
      return undefined
    })
  },
}

/**
 * Finds keys by a keyed digest of their digests. The secret is of this process alone, so the time of a search shows
 * no caller how close a guess was.
 */
function createKeyring(keys: readonly Permission[]): (given: string) => Permission | undefined {
  const secret = randomBytes(32)
  const blind = (digest: Buffer): string => createHmac('sha256', secret).update(digest).digest('base64')
  const known = new Map(keys.map(key => [blind(Buffer.from(key.sha256, 'hex')), key]))
  return given => known.get(blind(createHash('sha256').update(given, 'latin1').digest()))
}

function opens({ paths, methods }: Permission, { method, url }: FastifyRequest): boolean {
  if (methods.length > 0 && !methods.includes(method) && !(method === 'HEAD' && methods.includes('GET'))) return false
  const path = pathOf(url)
  const readings = hasReadings(path) ? [path, ...readingsOf(path)] : [path]
  // all paths that the service may read must be open
  return readings.every(reading => {
    const called = `${countedPath(reading)}/`
    return paths.some(allowed => called.startsWith(allowed))
  })
}
