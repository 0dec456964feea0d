import type { Figures } from './simulate.mjs'

export function runFleet(options: {
  clients: number
  seconds: number
  warmUpSeconds?: number
  redis?: string
}): Promise<Figures>
