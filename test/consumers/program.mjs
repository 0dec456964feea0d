// Uses the packed library as an application does. The argument is a rule file that admits two calls; prints "200 200 503, 0 mistakes".
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { createLimiter } from 'diana-limiter'
import { guard } from 'diana-limiter/http'

async function main(config) {
  const limiter = await createLimiter({ config })
  const server = createServer((_request, response) => response.end('hello\n'))
  guard(server, limiter)
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const url = `http://127.0.0.1:${server.address().port}`
  const statuses = []
  while (statuses.length < 3) statuses.push((await fetch(url)).status)
  // a changed document is read in a thread of its own if it is long, as it is here
  const mistakes = await limiter.documents.check('local', `${readFileSync(config, 'utf8')}# changed\n`)
  console.log(`${statuses.join(' ')}, ${mistakes.length} mistakes`)
  server.closeAllConnections()
  server.close()
  await limiter.close()
}

main(process.argv[2])
