import type { LimitedServer } from './servers.mjs'

export interface Figures {
  readonly calls: number
  readonly refused: number
  readonly ratio: number
  readonly used: number
  readonly peak: number
}

export function simulate(
  server: LimitedServer | undefined,
  options: { clients: number; windows: number; warmUp?: number; seed?: number },
): Promise<Figures>
