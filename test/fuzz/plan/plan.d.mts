export function planRound(seed: number, round: number, theme?: string): object
