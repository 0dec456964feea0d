export function randomFleet(seed: number): object
