import { impatient, startGateway, startServe } from '../gateway.mjs'
import { startGoodService, startHostileService } from '../service.mjs'
import { inspectMemory } from './oracle.mjs'
import { playPortRound } from './port-round.mjs'
import { playRound } from './round.mjs'

/** One gateway with its services, over several rounds. */
export class Session {
  configuration
  firstRound
  #gateway
  #services
  #heaps = []

  constructor({ configuration, firstRound }, gateway, services) {
    this.configuration = configuration
    this.firstRound = firstRound
    this.#gateway = gateway
    this.#services = services
  }

  static async start(configuration, firstRound) {
    if (configuration.target)
      return new Session({ configuration, firstRound }, await startServe(configuration), undefined)
    const [hostile, good] = await Promise.all([startHostileService(), startGoodService()])
    const gateway = await startGateway(configuration, { hostile: hostile.url, good: good.url }, impatient)
    return new Session({ configuration, firstRound }, gateway, { hostile, good })
  }

  /** Plays a round; what was only slow counts if it is slow a second time, since the machine has other work as well. */
  async play(plan) {
    const began = performance.now()
    const { target } = { ...this.configuration, ...plan }
    const play = () =>
      target ? playPortRound(plan, this.#gateway, target) : playRound(plan, this.#gateway, this.#services)
    let result = await play()
    if (result.findings.length > 0 && result.findings.every(({ kind }) => kind === 'slow')) {
      result = await play()
    }
    const memory = this.#gateway.hasEnded ? [] : await this.#gateway.memory()
    this.#heaps.push(memory.reduce((sum, { heapUsed }) => sum + heapUsed, 0))
    const findings = [...result.findings, ...inspectMemory({ peakBytes: result.peakBytes, heaps: this.#heaps })]
    const statuses = [...result.statuses].sort(([a], [b]) => a - b).map(([status, count]) => `${status}×${count}`)
    const { connections, requests } = result.counts
    const heap = `heap ${Math.round(this.#heaps.at(-1) / 1e6)} MB, peak ${Math.round(result.peakBytes / 1e6)} MB`
    const took = `${((performance.now() - began) / 1000).toFixed(1)} s`
    return {
      ...result,
      findings,
      line: `${took}, ${connections} connections, ${requests} requests, ${heap}: ${statuses.join(' ')}`,
    }
  }

  async close() {
    await this.#gateway.close()
    this.#services?.hostile.close()
    this.#services?.good.close()
  }
}
