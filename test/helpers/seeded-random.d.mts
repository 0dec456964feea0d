/** Returns a function that gives numbers from 0 to 1, the same for the same seed (mulberry32). */
export function seededRandom(seed: number): () => number
