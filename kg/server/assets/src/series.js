/** Colours that are distinct for most kinds of colour blindness, and readable on light and dark pages. */
export const SERIES = ["#0f7f74", "#d17a00", "#3a78c3", "#b8418c", "#8a8f2a", "#7a5cc9", "#c2452d", "#5b7a86"];
