import { createServer } from 'node:http'
import { createLimiter } from 'diana-limiter'
import { guard } from 'diana-limiter/http'

const limiter = await createLimiter({ rules: [{ id: 'per-address', by: 'ip', limit: '2/m' }] })
export const server = createServer((_request, response) => response.end('hello\n'))
guard(server, limiter)
