import { Agent, request } from 'node:http'

/** What became of the calls of a load: by status, or by the code of the error. */
export type Outcomes = Map<string, number>

/** Calls one after the other on each of several kept connections, until `stop` is called. */
export function load(url: string, connections: number): { stop(): Promise<Outcomes>; readonly outcomes: Outcomes } {
  const outcomes: Outcomes = new Map()
  let running = true
  const callers = Array.from({ length: connections }, async () => {
    const agent = new Agent({ keepAlive: true, maxSockets: 1 })
    while (running) {
      const outcome = await call(url, agent)
      outcomes.set(outcome, (outcomes.get(outcome) ?? 0) + 1)
      // nobody listens any more
      if (outcome === 'ECONNREFUSED' || outcome === 'never accepted') break
    }
    agent.destroy()
  })
  return {
    outcomes,
    stop: async () => {
      running = false
      await Promise.all(callers)
      return outcomes
    },
  }
}

export function call(url: string, agent?: Agent): Promise<string> {
  return new Promise(resolve => {
    const asked = request(url, agent ? { agent } : {}, answer => {
      answer.resume()
      answer.on('error', error => resolve(`broken ${(error as NodeJS.ErrnoException).code}`))
      answer.on('end', () => resolve(String(answer.statusCode)))
    })
    asked.on('error', error => {
      const { code } = error as NodeJS.ErrnoException
      // a new connection that waited to be accepted when nobody listened any more
      resolve(code === 'ECONNRESET' && agent && !asked.reusedSocket ? 'never accepted' : String(code))
    })
    asked.end()
  })
}
